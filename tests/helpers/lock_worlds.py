"""The same lock store three times, for the contract suite: the SQL itself, in memory, and on a real Valkey.

All three go by a virtual clock. Valkey's scripts are run as they are, but for the one call that asks for the time: that
reads a key which the test sets.
"""

from typing import Protocol
from unittest.mock import patch

import redis

from controlplane.adapters import redis_lock_scripts
from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.config import ClusterConfig
from controlplane.ports import LockStore
from controlplane.testing import MemoryLockServer, MemoryLockStore, VirtualClock
from tests.helpers.distribute_lock_sql import SqlLockServer, SqlLockStore

_SCRIPTS = ("READ", "INSERT", "TAKE_OVER", "RENEW", "RENEW_GUARDED", "FORCE_REFRESH")


class LockWorld(Protocol):
    """A lock store that several controllers use, and what may happen to it."""

    clock: VirtualClock

    def open_store(self, data_center: str = "dc", lock_name: str = "lock") -> LockStore:
        """A new controller's connection."""

    def let_time_pass(self, milliseconds: int) -> None:
        """Advance the store's clock."""

    def lose_data(self) -> None:
        """The store forgets everything."""

    def close(self) -> None:
        """Close every connection."""


class SqlLockWorld:
    """The oracle."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.server = SqlLockServer(self.clock)

    def open_store(self, data_center: str = "dc", lock_name: str = "lock") -> LockStore:
        """See :meth:`LockWorld.open_store`."""
        return SqlLockStore(self.server, data_center, lock_name)

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LockWorld.let_time_pass`."""
        self.clock.advance(milliseconds)

    def lose_data(self) -> None:
        """See :meth:`LockWorld.lose_data`."""
        self.server.lose_data()

    def close(self) -> None:
        """See :meth:`LockWorld.close`."""
        self.server.connection.close()


class MemoryLockWorld:
    """The fake."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.server = MemoryLockServer(self.clock)

    def open_store(self, data_center: str = "dc", lock_name: str = "lock") -> LockStore:
        """See :meth:`LockWorld.open_store`."""
        return MemoryLockStore(self.server, data_center, lock_name)

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LockWorld.let_time_pass`."""
        self.clock.advance(milliseconds)

    def lose_data(self) -> None:
        """See :meth:`LockWorld.lose_data`."""
        self.server.lose_data()

    def close(self) -> None:
        """See :meth:`LockWorld.close`."""


class RedisLockWorld:
    """A real server on a time of the test's own."""

    def __init__(self, redis_url: str, cluster_name: str) -> None:
        self.clock = VirtualClock()
        self.cluster = ClusterConfig(cluster_name)
        self._redis_url = redis_url
        self._redis = redis.Redis.from_url(redis_url)
        self._time_key = f"test-time-of-{cluster_name}"
        self._stores: list[RedisLockStore] = []
        self._set_time()

    def open_store(self, data_center: str = "dc", lock_name: str = "lock") -> LockStore:
        """See :meth:`LockWorld.open_store`."""
        asks, answers = "redis.call('TIME')", f"redis.call('LRANGE', '{self._time_key}', 0, 1)"
        scripts = {name: getattr(redis_lock_scripts, name) for name in _SCRIPTS}
        assert all(source.count(asks) == 1 for source in scripts.values())
        with patch.multiple(
            redis_lock_scripts, **{name: source.replace(asks, answers) for name, source in scripts.items()}
        ):
            store = RedisLockStore(self.cluster, self._redis_url, data_center, lock_name, 5_000)
        self._stores.append(store)
        return store

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LockWorld.let_time_pass`."""
        self.clock.advance(milliseconds)
        self._set_time()

    def lose_data(self) -> None:
        """See :meth:`LockWorld.lose_data`; the scripts that the server knows are lost, too."""
        keys = self._redis.keys(f"controlplane:{{{self.cluster.name}}}:*")
        if keys:
            self._redis.delete(*keys)
        self._redis.script_flush()

    def close(self) -> None:
        """See :meth:`LockWorld.close`."""
        for store in self._stores:
            store.close()
        self._redis.close()

    def _set_time(self) -> None:
        seconds, milliseconds = divmod(self.clock.wall_ms(), 1_000)
        pipeline = self._redis.pipeline()
        pipeline.delete(self._time_key)
        pipeline.rpush(self._time_key, seconds, milliseconds * 1_000)
        pipeline.execute()

"""The same lease store twice, for the contract suite: in memory on a virtual clock, and on a real Valkey."""

import time
from collections.abc import Callable
from typing import Protocol, cast

import redis

from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import ProcessId
from controlplane.ports import LeaseStore
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, VirtualClock


class LeaseWorld(Protocol):
    """A lease store that several controllers use, and what may happen to it."""

    def open_store(self, process: ProcessId = "") -> LeaseStore:
        """A new connection, for this process."""

    def let_time_pass(self, milliseconds: int) -> None:
        """Advance the store's clock."""

    def set_clock_back(self, milliseconds: int) -> None:
        """The store's clock is set back: all that is stored is that much further in its future."""

    def lose_data(self) -> None:
        """The store forgets the cluster, as after a restart without persistence."""

    def take_away(self) -> None:
        """The store stops answering."""

    def bring_back(self) -> None:
        """The store answers again."""

    def close(self) -> None:
        """Close every connection."""


class MemoryLeaseWorld:
    """The fake."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._server = MemoryLeaseServer(self._clock)

    def open_store(self, process: ProcessId = "") -> LeaseStore:
        """See :meth:`LeaseWorld.open_store`."""
        return MemoryLeaseStore(self._server, process)

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LeaseWorld.let_time_pass`."""
        self._clock.advance(milliseconds)

    def set_clock_back(self, milliseconds: int) -> None:
        """See :meth:`LeaseWorld.set_clock_back`."""
        self._clock.step_wall(-milliseconds)

    def lose_data(self) -> None:
        """See :meth:`LeaseWorld.lose_data`."""
        self._server.lose_data()

    def take_away(self) -> None:
        """See :meth:`LeaseWorld.take_away`."""
        self._server.available = False

    def bring_back(self) -> None:
        """See :meth:`LeaseWorld.bring_back`."""
        self._server.available = True

    def close(self) -> None:
        """See :meth:`LeaseWorld.close`."""


class RedisLeaseWorld:
    """A real server.

    Args:
        redis_url: where it is.
        cluster_name: a name that no other test uses on this server.
        pause, resume: freeze the server and resume it, if that is possible.
        timeout_ms: how long the stores wait for an answer.
    """

    def __init__(
        self,
        redis_url: str,
        cluster_name: str,
        pause: Callable[[], None] | None = None,
        resume: Callable[[], None] | None = None,
        timeout_ms: int = 5_000,
    ) -> None:
        self.cluster = ClusterConfig(cluster_name)
        self._redis_url = redis_url
        self._pause = pause
        self._resume = resume
        self._timeout_ms = timeout_ms
        self._stores: list[LeaseStore] = []

    def open_store(self, process: ProcessId = "") -> LeaseStore:
        """See :meth:`LeaseWorld.open_store`."""
        store = RedisLeaseStore(self.cluster, self._redis_url, self._timeout_ms, process)
        self._stores.append(store)
        return store

    def let_time_pass(self, milliseconds: int) -> None:
        """See :meth:`LeaseWorld.let_time_pass`."""
        time.sleep(milliseconds / 1_000)

    def set_clock_back(self, milliseconds: int) -> None:
        """See :meth:`LeaseWorld.set_clock_back`: the clock is the machine's, so what is stored is moved instead."""
        with redis.Redis.from_url(self._redis_url, decode_responses=True) as connection:
            if connection.exists(self.cluster.lease_key):
                connection.hincrby(self.cluster.lease_key, "expires_at_ms", milliseconds)
            entries = cast("dict[str, str]", connection.hgetall(self.cluster.contenders_key))
            for owner, entry in entries.items():
                priority, since_ms, seen_ms = map(int, entry.split())
                moved = f"{priority} {since_ms + milliseconds} {seen_ms + milliseconds}"
                connection.hset(self.cluster.contenders_key, owner, moved)

    def lose_data(self) -> None:
        """See :meth:`LeaseWorld.lose_data`; the scripts that the server knows are lost, too."""
        with redis.Redis.from_url(self._redis_url) as connection:
            cluster = self.cluster
            connection.delete(cluster.lease_key, cluster.contenders_key, cluster.log_id_key)
            connection.delete(cluster.log_mark_key, cluster.acknowledged_key)
            connection.script_flush()

    def take_away(self) -> None:
        """See :meth:`LeaseWorld.take_away`."""
        assert self._pause is not None, "this world's server is shared: use a server of the test's own"
        self._pause()

    def bring_back(self) -> None:
        """See :meth:`LeaseWorld.bring_back`."""
        assert self._resume is not None, "this world's server is shared: use a server of the test's own"
        self._resume()

    def close(self) -> None:
        """See :meth:`LeaseWorld.close`."""
        for store in self._stores:
            store.close()

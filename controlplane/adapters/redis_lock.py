"""SOFARegistry's ``distribute_lock`` in Redis; its statements run there: ``redis_lock_scripts``."""

from collections.abc import Sequence
from typing import cast

from controlplane.adapters import redis_lock_scripts
from controlplane.adapters.redis_connection import RedisConnection, RedisScript
from controlplane.config import ClusterConfig
from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.core.values.identifiers import ControllerId


class RedisLockStore:
    """Implements :class:`controlplane.ports.LockStore`. Not thread-safe: one connection, one request at a time.

    Args:
        cluster: determines the keys.
        redis_url: for example ``redis://localhost:6379/0``.
        data_center, lock_name: the key of the record.
        timeout_ms: how long to wait for a connection, and for an answer.

    Raises:
        ConfigurationError: the address is not a Redis address.
    """

    def __init__(
        self, cluster: ClusterConfig, redis_url: str, data_center: str, lock_name: str, timeout_ms: int = 400
    ) -> None:
        """Set up; the first request opens the connection."""
        self._cluster = cluster
        self._data_center, self._lock_name = data_center, lock_name
        self._key = cluster.lock_key(data_center, lock_name)
        self._redis = RedisConnection(cluster, redis_url, timeout_ms)
        self._read = self._redis.script(redis_lock_scripts.READ)
        self._insert = self._redis.script(redis_lock_scripts.INSERT)
        self._take_over = self._redis.script(redis_lock_scripts.TAKE_OVER)
        self._renew = self._redis.script(redis_lock_scripts.RENEW)
        self._renew_guarded = self._redis.script(redis_lock_scripts.RENEW_GUARDED)
        self._force_refresh = self._redis.script(redis_lock_scripts.FORCE_REFRESH)

    def read(self) -> LockReading:
        """See :meth:`controlplane.ports.LockStore.read`."""
        return self._read_at(self._key)

    def read_all(self) -> Sequence[LockReading]:
        """See :meth:`controlplane.ports.LockStore.read_all`."""
        key = self._cluster.locks_key
        with self._redis.errors_translated(key):
            keys = cast("set[str]", self._redis.client.smembers(key))
        return [reading for each in sorted(keys) if (reading := self._read_at(each)).record is not None]

    def insert(self, owner: ControllerId, duration_ms: int, first_term: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.insert`."""
        return self._changed(self._insert, self._data_center, self._lock_name, owner, duration_ms, first_term)

    def take_over(self, new_owner: ControllerId, seen: LockRecord) -> bool:
        """See :meth:`controlplane.ports.LockStore.take_over`."""
        return self._changed(self._take_over, new_owner, seen.owner, seen.term, seen.term_duration, seen.duration_ms)

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """See :meth:`controlplane.ports.LockStore.renew`."""
        if guarded:
            return self._changed(self._renew_guarded, seen.owner, seen.term, seen.term_duration, seen.duration_ms)
        return self._changed(self._renew, seen.owner)

    def force_refresh(self, owner: ControllerId, duration_ms: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.force_refresh`."""
        return self._changed(self._force_refresh, owner, duration_ms)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def _read_at(self, key: str) -> LockReading:
        now_ms, *row = cast("list[str]", self._read([key]))
        if not row:
            return LockReading(None, int(now_ms))
        data_center, lock_name, owner, *numbers = row
        return LockReading(LockRecord(data_center, lock_name, owner, *map(int, numbers)), int(now_ms))

    def _changed(self, script: RedisScript, *arguments: str | int) -> bool:
        return script([self._key, self._cluster.locks_key], *arguments) == 1

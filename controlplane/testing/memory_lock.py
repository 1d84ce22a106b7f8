"""SOFARegistry's ``distribute_lock`` in memory: the rules of the Lua scripts, on a virtual clock, with faults."""

from collections.abc import Sequence

from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.core.values.identifiers import ControllerId
from controlplane.testing.memory_server import MemoryClient, MemoryServer


class MemoryLockServer(MemoryServer):
    """The server that holds the records of one cluster."""

    def _forget(self) -> None:
        self.records: dict[tuple[str, str], LockRecord] = {}
        """By data centre and lock name."""


class MemoryLockStore(MemoryClient[MemoryLockServer]):
    """Implements :class:`controlplane.ports.LockStore` on a :class:`MemoryLockServer`."""

    def __init__(self, server: MemoryLockServer, data_center: str, lock_name: str) -> None:
        """Connect to the shared server for the record of one data centre and lock name."""
        super().__init__(server)
        self._key = data_center, lock_name

    def read(self) -> LockReading:
        """See :meth:`controlplane.ports.LockStore.read`."""
        with self._request() as now_ms:
            return LockReading(self._server.records.get(self._key), now_ms)

    def read_all(self) -> Sequence[LockReading]:
        """See :meth:`controlplane.ports.LockStore.read_all`."""
        with self._request() as now_ms:
            return [LockReading(self._server.records[key], now_ms) for key in sorted(self._server.records)]

    def insert(self, owner: ControllerId, duration_ms: int, first_term: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.insert`."""
        with self._request() as now_ms:
            if self._key in self._server.records:
                return False
            self._server.records[self._key] = LockRecord(
                *self._key, owner, duration_ms, now_ms, now_ms, first_term, term_duration=0
            )
            return True

    def take_over(self, new_owner: ControllerId, seen: LockRecord) -> bool:
        """See :meth:`controlplane.ports.LockStore.take_over`."""
        with self._request() as now_ms:
            row = self._row_as(seen)
            if row is None or _elapsed_s(now_ms, row) * 1_000 <= seen.duration_ms:
                return False
            self._change(row._replace(owner=new_owner, gmt_modified_ms=now_ms, term=row.term + 1, term_duration=0))
            return True

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """See :meth:`controlplane.ports.LockStore.renew`."""
        with self._request() as now_ms:
            row = self._row_as(seen) if guarded else self._row_of(seen.owner)
            if row is None or (guarded and _elapsed_s(now_ms, row) * 1_000 >= seen.duration_ms):
                return False
            self._change(row._replace(gmt_modified_ms=now_ms, term_duration=row.term_duration + 1))
            return True

    def force_refresh(self, owner: ControllerId, duration_ms: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.force_refresh`."""
        with self._request() as now_ms:
            row = self._row_of(owner)
            if row is None:
                return False
            self._change(row._replace(duration_ms=duration_ms, gmt_modified_ms=now_ms))
            return True

    def _row_of(self, owner: ControllerId) -> LockRecord | None:
        row = self._server.records.get(self._key)
        return row if row is not None and row.owner == owner else None

    def _row_as(self, seen: LockRecord) -> LockRecord | None:
        row = self._row_of(seen.owner)
        as_seen = row is not None and (row.term, row.term_duration) == (seen.term, seen.term_duration)
        return row if as_seen else None

    def _change(self, row: LockRecord) -> None:
        self._server.records[self._key] = row


def _elapsed_s(now_ms: int, row: LockRecord) -> int:
    """Whole seconds since the last change, by a time without milliseconds (``NOW()``)."""
    return (now_ms // 1_000 * 1_000 - row.gmt_modified_ms) // 1_000

"""SOFARegistry's ``distribute_lock`` in memory: the same rules as the Lua scripts, by a virtual clock, with faults."""

import threading
from collections.abc import Sequence

from controlplane.core.identifiers import ControllerId
from controlplane.core.lease_store.lock_record import LockReading, LockRecord
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import Clock


class MemoryLockServer:
    """The records of one cluster, shared by the stores that its controllers hold.

    Attributes:
        available: False makes every request of every store fail; the data stays.
        records: by data centre and lock name.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin empty; ``clock`` is the server's own time."""
        self.available = True
        self.clock = clock
        self.lock = threading.Lock()
        self.records: dict[tuple[str, str], LockRecord] = {}

    def lose_data(self) -> None:
        """Forget everything, as a store that was restarted without persistence."""
        with self.lock:
            self.records.clear()


class MemoryLockStore:
    """Implements :class:`controlplane.ports.LockStore` on a :class:`MemoryLockServer`.

    Attributes:
        connected: False cuts this client off, and no other one.
    """

    def __init__(self, server: MemoryLockServer, data_center: str, lock_name: str) -> None:
        """Connect to the shared server."""
        self.connected = True
        self._server = server
        self._key = data_center, lock_name

    def read(self) -> LockReading:
        """See :meth:`controlplane.ports.LockStore.read`."""
        self._require_answer()
        with self._server.lock:
            return LockReading(self._server.records.get(self._key), self._now_ms())

    def read_all(self) -> Sequence[LockReading]:
        """See :meth:`controlplane.ports.LockStore.read_all`."""
        self._require_answer()
        with self._server.lock:
            return [LockReading(self._server.records[key], self._now_ms()) for key in sorted(self._server.records)]

    def insert(self, owner: ControllerId, duration_ms: int, first_term: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.insert`."""
        self._require_answer()
        with self._server.lock:
            if self._key in self._server.records:
                return False
            now_ms = self._now_ms()
            self._server.records[self._key] = LockRecord(
                *self._key, owner, duration_ms, now_ms, now_ms, first_term, term_duration=0
            )
            return True

    def take_over(self, new_owner: ControllerId, seen: LockRecord) -> bool:
        """See :meth:`controlplane.ports.LockStore.take_over`."""
        self._require_answer()
        with self._server.lock:
            row = self._row_as(seen)
            if row is None or self._elapsed_s(row) * 1_000 <= seen.duration_ms:
                return False
            self._change(
                row._replace(owner=new_owner, gmt_modified_ms=self._now_ms(), term=row.term + 1, term_duration=0)
            )
            return True

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """See :meth:`controlplane.ports.LockStore.renew`."""
        self._require_answer()
        with self._server.lock:
            row = self._row_as(seen) if guarded else self._row_of(seen.owner)
            if row is None or (guarded and self._elapsed_s(row) * 1_000 >= seen.duration_ms):
                return False
            self._change(row._replace(gmt_modified_ms=self._now_ms(), term_duration=row.term_duration + 1))
            return True

    def force_refresh(self, owner: ControllerId, duration_ms: int) -> bool:
        """See :meth:`controlplane.ports.LockStore.force_refresh`."""
        self._require_answer()
        with self._server.lock:
            row = self._row_of(owner)
            if row is None:
                return False
            self._change(row._replace(duration_ms=duration_ms, gmt_modified_ms=self._now_ms()))
            return True

    def close(self) -> None:
        """Give the connection back."""
        self.connected = False

    def _require_answer(self) -> None:
        if not (self.connected and self._server.available):
            raise LeaseStoreUnavailableError("the in-memory lock store was made unavailable: make it available again")

    def _now_ms(self) -> int:
        return self._server.clock.wall_ms()

    def _row_of(self, owner: ControllerId) -> LockRecord | None:
        row = self._server.records.get(self._key)
        return row if row is not None and row.owner == owner else None

    def _row_as(self, seen: LockRecord) -> LockRecord | None:
        row = self._row_of(seen.owner)
        as_seen = row is not None and (row.term, row.term_duration) == (seen.term, seen.term_duration)
        return row if as_seen else None

    def _elapsed_s(self, row: LockRecord) -> int:
        """Whole seconds since the last change, by a time without milliseconds (``NOW()``)."""
        return (self._now_ms() // 1_000 * 1_000 - row.gmt_modified_ms) // 1_000

    def _change(self, row: LockRecord) -> None:
        self._server.records[self._key] = row

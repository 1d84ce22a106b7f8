"""A lease store in memory: the same rules as the Lua scripts, on a virtual clock, with faults on demand."""

from collections.abc import Sequence

from controlplane.core.election.contenders import Contenders, Contending, yields_ms
from controlplane.core.election.lease import Lease
from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId, ProcessId, Term
from controlplane.ports import (
    AcquireOutcome,
    ContenderNote,
    LeaseGranted,
    LeaseHeld,
    LeaseLeft,
    LeaseMissing,
    LeaseRenewed,
    RenewOutcome,
)
from controlplane.testing.memory_server import MemoryClient, MemoryServer


class MemoryLeaseServer(MemoryServer):
    """The server that holds the lease of one cluster."""

    def _forget(self) -> None:
        self.lease = Lease()
        self.contenders = Contenders()
        self.log_id: str | None = None
        self.mark: LogMark | None = None
        self.acknowledged: tuple[ControllerId, int] = "", 0
        self.answered: tuple[ControllerId, int] = "", 0


class MemoryLeaseStore(MemoryClient[MemoryLeaseServer]):
    """Implements :class:`controlplane.ports.LeaseStore` on a :class:`MemoryLeaseServer`."""

    def __init__(self, server: MemoryLeaseServer, process: ProcessId = "") -> None:
        """Connect to the shared server; ``process`` distinguishes the processes that use one name."""
        super().__init__(server)
        self._process = process

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        with self._request() as now_ms:
            self._server.lease = before = self._server.lease.mended(now_ms)
            known = self._server.contenders.present(now_ms, duration_ms)
            contenders = known.without(owner) if priority is None else known.seen(now_ms, owner, priority)
            self._server.contenders = contenders
            after = before.acquired(now_ms, owner, self._process, floor, duration_ms)
            if after is None:
                return _held(before, now_ms)
            above = contenders.outranking(now_ms, owner, priority or 0)
            wait_ms = yields_ms(-before.remaining_ms(now_ms), duration_ms)
            if above is not None and not before.holder(now_ms) and wait_ms > 0:
                return LeaseLeft(above.owner, wait_ms)
            self._server.lease, self._server.contenders = after, contenders.without(owner)
            return LeaseGranted(after.term)

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`; an expired lease counts as missing, also for its owner."""
        with self._request() as now_ms:
            after = self._server.lease.renewed(now_ms, owner, self._process, term, duration_ms)
            if after is None:
                return self._current(now_ms)
            contenders = self._server.contenders.present(now_ms, duration_ms)
            self._server.lease, self._server.contenders = after, contenders
            return LeaseRenewed(term, contenders.outranking(now_ms, owner, priority))

    def contenders(self) -> Sequence[Contending]:
        """See :meth:`controlplane.ports.LeaseStore.contenders`."""
        with self._request() as now_ms:
            return self._server.contenders.contending(now_ms)

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        with self._request() as now_ms:
            after = self._server.lease.released(now_ms, owner, self._process, term)
            if after is None:
                return False
            self._server.lease = after
            return True

    def read(self) -> LeaseHeld | LeaseMissing:
        """See :meth:`controlplane.ports.LeaseStore.read`."""
        with self._request() as now_ms:
            return self._current(now_ms)

    def read_log_id(self) -> str | None:
        """See :meth:`controlplane.ports.LeaseStore.read_log_id`."""
        with self._request():
            return self._server.log_id

    def write_log_id(self, log_id: str) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_log_id`."""
        with self._request():
            self._server.log_id = log_id

    def read_mark(self) -> LogMark | None:
        """See :meth:`controlplane.ports.LeaseStore.read_mark`."""
        with self._request():
            return self._server.mark

    def write_mark(self, mark: LogMark) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_mark`."""
        with self._request():
            stored = self._server.mark
            if stored is None or stored.log_id != mark.log_id or stored.seq < mark.seq:
                self._server.mark = mark

    def write_note(self, owner: ControllerId, acknowledged_ms: int, longest_unanswered_ms: int | None) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_note`; a time ahead is replaced."""
        with self._request() as now_ms:
            server = self._server
            server.acknowledged = _later(now_ms, server.acknowledged, (owner, now_ms - acknowledged_ms))
            if longest_unanswered_ms is not None:
                server.answered = _later(now_ms, server.answered, (owner, now_ms - longest_unanswered_ms))

    def read_note(self, owner: ControllerId) -> ContenderNote:
        """See :meth:`controlplane.ports.LeaseStore.read_note`."""
        with self._request() as now_ms:
            stored = self._server.acknowledged, self._server.answered
            return ContenderNote(
                *(None if noted_by in {"", owner} or at_ms > now_ms else now_ms - at_ms for noted_by, at_ms in stored)
            )

    def _current(self, now_ms: int) -> LeaseHeld | LeaseMissing:
        lease = self._server.lease
        return _held(lease, now_ms) if lease.holder(now_ms) else LeaseMissing()


def _held(lease: Lease, now_ms: int) -> LeaseHeld:
    return LeaseHeld(lease.owner, lease.process, lease.term, lease.remaining_ms(now_ms))


def _later(now_ms: int, stored: tuple[ControllerId, int], noted: tuple[ControllerId, int]) -> tuple[ControllerId, int]:
    return stored if noted[1] < stored[1] <= now_ms else noted

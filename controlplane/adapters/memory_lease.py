"""A lease store in memory: the same rules as the Lua scripts, by a virtual clock, with faults on demand."""

import threading
from collections.abc import Sequence

from controlplane.core.identifiers import ControllerId, Term
from controlplane.core.lease_store.contenders import Contenders, yields_ms
from controlplane.core.lease_store.lease import Lease
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.ports import (
    AcquireOutcome,
    Clock,
    Contending,
    LeaseGranted,
    LeaseHeld,
    LeaseLeft,
    LeaseMissing,
    LeaseRenewed,
    RenewOutcome,
)


class MemoryLeaseServer:
    """The lease of one cluster, shared by the stores that its controllers hold.

    Attributes:
        available: False makes every request of every store fail, as a dead Redis does; the data stays.
        refusal: where it says something, every request is refused with it, as by a Redis whose users were changed.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin empty; ``clock`` is the server's own time."""
        self.available = True
        self.refusal = ""
        self.clock = clock
        self.lock = threading.Lock()
        self.lease = Lease()
        self.contenders = Contenders()
        self.log_id: str | None = None

    def lose_data(self) -> None:
        """Forget everything, as a Redis that was restarted without persistence."""
        with self.lock:
            self.lease = Lease()
            self.contenders = Contenders()
            self.log_id = None


class MemoryLeaseStore:
    """Implements :class:`controlplane.ports.LeaseStore` on a :class:`MemoryLeaseServer`.

    Attributes:
        connected: False cuts this client off, and no other one.
    """

    def __init__(self, server: MemoryLeaseServer) -> None:
        """Connect to the shared server."""
        self.connected = True
        self._server = server

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        self._require_answer()
        with self._server.lock:
            now_ms = self._now_ms()
            self._server.lease = before = self._server.lease.mended(now_ms)
            known = self._server.contenders.present(now_ms, duration_ms)
            contenders = known.without(owner) if priority is None else known.seen(now_ms, owner, priority)
            self._server.contenders = contenders
            after = before.acquired(now_ms, owner, floor, duration_ms)
            if after is None:
                return LeaseHeld(before.owner, before.term, before.remaining_ms(now_ms))
            above = contenders.outranking(now_ms, owner, priority or 0)
            wait_ms = yields_ms(-before.remaining_ms(now_ms), duration_ms)
            if above is not None and not before.holder(now_ms) and wait_ms > 0:
                return LeaseLeft(above.owner, wait_ms)
            self._server.lease, self._server.contenders = after, contenders.without(owner)
            return LeaseGranted(after.term)

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`; a lease that ran out is missing, even for its last owner."""
        self._require_answer()
        with self._server.lock:
            now_ms = self._now_ms()
            after = self._server.lease.renewed(now_ms, owner, term, duration_ms)
            if after is None:
                return self._current()
            contenders = self._server.contenders.present(now_ms, duration_ms)
            self._server.lease, self._server.contenders = after, contenders
            return LeaseRenewed(term, contenders.outranking(now_ms, owner, priority))

    def contenders(self) -> Sequence[Contending]:
        """See :meth:`controlplane.ports.LeaseStore.contenders`."""
        self._require_answer()
        with self._server.lock:
            now_ms, known = self._now_ms(), self._server.contenders.by_owner
            return [
                Contending(name, each.priority, now_ms - each.since_ms, now_ms - each.seen_ms)
                for name, each in sorted(known.items())
                if each.seen_ms <= now_ms
            ]

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        self._require_answer()
        with self._server.lock:
            after = self._server.lease.released(self._now_ms(), owner, term)
            if after is None:
                return False
            self._server.lease = after
            return True

    def read(self) -> LeaseHeld | LeaseMissing:
        """See :meth:`controlplane.ports.LeaseStore.read`."""
        self._require_answer()
        with self._server.lock:
            return self._current()

    def read_log_id(self) -> str | None:
        """See :meth:`controlplane.ports.LeaseStore.read_log_id`."""
        self._require_answer()
        return self._server.log_id

    def write_log_id(self, log_id: str) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_log_id`."""
        self._require_answer()
        self._server.log_id = log_id

    def close(self) -> None:
        """Give the connection back."""
        self.connected = False

    def _require_answer(self) -> None:
        if not (self.connected and self._server.available):
            raise LeaseStoreUnavailableError("the in-memory lease store was made unavailable: make it available again")
        if self._server.refusal:
            raise ConfigurationError(self._server.refusal)

    def _now_ms(self) -> int:
        return self._server.clock.wall_ms()

    def _current(self) -> LeaseHeld | LeaseMissing:
        lease, now_ms = self._server.lease, self._now_ms()
        if not lease.holder(now_ms):
            return LeaseMissing()
        return LeaseHeld(lease.owner, lease.term, lease.remaining_ms(now_ms))

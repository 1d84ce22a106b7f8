"""A lease store in memory: the same rules as the Lua scripts, by a virtual clock, with faults on demand."""

import threading
from dataclasses import dataclass, field

from controlplane.core.identifiers import ControllerId, Term
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.ports import (
    AcquireOutcome,
    Clock,
    LeaseGranted,
    LeaseHeld,
    LeaseMissing,
    LeaseRenewed,
    RenewOutcome,
)


@dataclass(slots=True)
class _Lease:
    """What Redis keeps in the hash; ``owner`` is empty when it was given back."""

    owner: ControllerId = ""
    term: Term = field(default=Term(0))
    expires_at_ms: int = 0


class MemoryLeaseServer:
    """The lease of one cluster, shared by the stores that its controllers hold.

    Attributes:
        available: False makes every request of every store fail, as a dead Redis does; the data stays.
    """

    def __init__(self, clock: Clock) -> None:
        """Begin empty; ``clock`` is the server's own time."""
        self.available = True
        self.clock = clock
        self.lock = threading.Lock()
        self.lease = _Lease()
        self.log_id: str | None = None

    def lose_data(self) -> None:
        """Forget everything, as a Redis that was restarted without persistence."""
        with self.lock:
            self.lease = _Lease()
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

    def acquire(self, owner: ControllerId, floor: Term, duration_ms: int) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        self._require_answer()
        with self._server.lock:
            current = self._current()
            if isinstance(current, LeaseHeld) and current.owner != owner:
                return current
            term = Term(max(self._server.lease.term, floor) + 1)
            self._server.lease = _Lease(owner, term, self._now_ms() + duration_ms)
            return LeaseGranted(term)

    def renew(self, owner: ControllerId, term: Term, duration_ms: int) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`; a lease that ran out is missing, even for its last owner."""
        self._require_answer()
        with self._server.lock:
            current = self._current()
            if isinstance(current, LeaseMissing) or (current.owner, current.term) != (owner, term):
                return current
            self._server.lease.expires_at_ms = self._now_ms() + duration_ms
            return LeaseRenewed(term)

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        self._require_answer()
        with self._server.lock:
            current = self._current()
            if isinstance(current, LeaseMissing) or (current.owner, current.term) != (owner, term):
                return False
            self._server.lease = _Lease(term=term)
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

    def _now_ms(self) -> int:
        return self._server.clock.wall_ms()

    def _current(self) -> LeaseHeld | LeaseMissing:
        lease = self._server.lease
        remaining_ms = lease.expires_at_ms - self._now_ms()
        if not lease.owner or remaining_ms <= 0:
            return LeaseMissing()
        return LeaseHeld(lease.owner, lease.term, remaining_ms)

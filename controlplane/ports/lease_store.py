"""The lease store: who leads, and whoever would."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from controlplane.core.election.contenders import Contending, Outranking
from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.core.values.identifiers import ControllerId, ProcessId, Term


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """The caller holds the lease; ``term`` is greater than every term granted or named as a floor before."""

    term: Term


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The caller still holds the lease, for a whole duration from before the request.

    ``outranked_by`` is the most preferred contender above it, if there is one.
    """

    term: Term
    outranked_by: Outranking | None = None


@dataclass(frozen=True, slots=True)
class LeaseHeld:
    """Somebody else holds it: another controller, or another process of the same name."""

    owner: ControllerId
    process: ProcessId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeaseMissing:
    """Nobody holds it: it ran out, was given back, or the store lost its data."""


@dataclass(frozen=True, slots=True)
class LeaseLeft:
    """The lease is free, and left for a while to the preferred contender ``left_to``; ask again after ``wait_ms``."""

    left_to: ControllerId
    wait_ms: int


AcquireOutcome: TypeAlias = LeaseGranted | LeaseHeld | LeaseLeft
RenewOutcome: TypeAlias = LeaseRenewed | LeaseHeld | LeaseMissing


class LeaseStore(Protocol):
    """The lease, by the store's own time, for one process: another one of the same name is another contender.

    Every method that asks the store raises ``LeaseStoreUnavailableError`` without an answer, and ``ConfigurationError``
    when the store refuses this client's login or does not let it do that.
    """

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """Take the lease if it is free, run out, or this process's own.

        The new term is max(stored term, floor) + 1, also when this process held it already. A lease that became free
        less than half a duration ago is left to a contender of a greater priority that has asked within a duration.
        Whoever asks with a priority is remembered as such a contender, by its name alone; without one it counts as 0
        and is forgotten.
        """
        ...

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """Prolong the lease if owner, process and term are the stored ones; tells who outranks ``priority``."""
        ...

    def contenders(self) -> Sequence[Contending]:
        """Everybody who is remembered to have asked for the lease, by name."""
        ...

    def release(self, owner: ControllerId, term: Term) -> bool:
        """Give the lease back if owner, process and term are the stored ones; the term stays. True if it was ours."""
        ...

    def read(self) -> LeaseHeld | LeaseMissing:
        """Who holds the lease now."""
        ...

    def read_log_id(self) -> str | None:
        """The log id that the cluster's first leader left here, if the store still has it."""
        ...

    def write_log_id(self, log_id: str) -> None:
        """Remember the log id."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class LockStore(Protocol):
    """One record of SOFARegistry's ``distribute_lock``, by the store's own time.

    Each method is one statement of its ``distribute_lock.xml``. What a statement changed is told for tests and logs
    only: in the election the row that is read back says what came of it. The methods raise as those of
    :class:`LeaseStore` do.
    """

    def read(self) -> LockReading:
        """``queryDistLock``: the row and the store's time."""
        ...

    def read_all(self) -> Sequence[LockReading]:
        """Every row of the cluster, whatever its data centre and name."""
        ...

    def insert(self, owner: ControllerId, duration_ms: int, first_term: int) -> bool:
        """``competeLockOnInsert``: make the row; nothing where there is one. True if it was made."""
        ...

    def take_over(self, new_owner: ControllerId, seen: LockRecord) -> bool:
        """``competeLockOnUpdate``: a new owner and term, no renewals.

        Only if owner, term and renewals are as seen and more than the seen duration has passed, in whole seconds.
        """
        ...

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """``ownerHeartbeat``: one renewal more, if the row's owner is as seen.

        ``guarded`` also wants term and renewals as seen, and less than the seen duration passed, in whole seconds.
        """
        ...

    def force_refresh(self, owner: ControllerId, duration_ms: int) -> bool:
        """``forceRefresh``: another duration and a new modification time, if this is the owner."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...

"""The lease store: the lease, its holder and its contenders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from controlplane.core.election.contenders import Contending, Outranking
from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId, ProcessId, Term


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """The caller holds the lease; ``term`` is greater than every term granted or named as a floor before."""

    term: Term


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The caller still holds the lease, for a whole duration from a time before the request.

    ``outranked_by`` is the most preferred contender with a greater priority, if there is one.
    """

    term: Term
    outranked_by: Outranking | None = None


@dataclass(frozen=True, slots=True)
class LeaseHeld:
    """The lease is held by another controller, or by another process of the same name."""

    owner: ControllerId
    process: ProcessId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeaseMissing:
    """No controller holds the lease: it expired, was given back, or the store lost its data."""


@dataclass(frozen=True, slots=True)
class LeaseLeft:
    """The lease is free, but left for a while to the preferred contender ``left_to``; ask again after ``wait_ms``."""

    left_to: ControllerId
    wait_ms: int


AcquireOutcome: TypeAlias = LeaseGranted | LeaseHeld | LeaseLeft
RenewOutcome: TypeAlias = LeaseRenewed | LeaseHeld | LeaseMissing


class ContenderNote(NamedTuple):
    """What contenders have noted of Kafka's answers, each the latest by any of them.

    Attributes:
        acknowledged_ms: how long ago Kafka acknowledged a tick; None if that is not noted.
        longest_unanswered_ms: how long ago it last answered about the partition of which it has not answered for the
            longest; None if that is not noted, as by the releases before.
    """

    acknowledged_ms: int | None
    longest_unanswered_ms: int | None


NOTHING_NOTED: Final = ContenderNote(None, None)


class LeaseStore(Protocol):
    """The lease, by the store's own time, for one process: another process of the same name is another contender.

    Every method that asks the store raises ``LeaseStoreUnavailableError`` if it does not answer, and
    ``ConfigurationError`` if it refuses this client's login or denies it the request.
    """

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """Take the lease if it is free, expired, or this process's own.

        The new term is max(stored term, floor) + 1, also if this process held the lease already. A lease that became
        free less than half a duration ago is left to a contender of a greater priority that has asked within a
        duration. A caller that gives a priority is recorded as such a contender, under its name alone. A caller without
        one counts as priority 0, and its record is removed.
        """
        ...

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """Prolong the lease if owner, process and term are the stored ones; the answer says who outranks it."""
        ...

    def contenders(self) -> Sequence[Contending]:
        """The contenders that the store has on record, by name."""
        ...

    def release(self, owner: ControllerId, term: Term) -> bool:
        """Give the lease back if owner, process and term are the stored ones; the term stays. False if they are not."""
        ...

    def read(self) -> LeaseHeld | LeaseMissing:
        """The present holder of the lease, if any."""
        ...

    def read_log_id(self) -> str | None:
        """The log id that the cluster's first leader wrote; None if the store does not have it any more."""
        ...

    def write_log_id(self, log_id: str) -> None:
        """Store the log id."""
        ...

    def read_mark(self) -> LogMark | None:
        """How far the decision log was last known to reach; None if the store does not know."""
        ...

    def write_mark(self, mark: LogMark) -> None:
        """Store a mark, unless a later one of the same log is stored: a leader that was paused writes late."""
        ...

    def write_note(self, owner: ControllerId, acknowledged_ms: int, longest_unanswered_ms: int | None) -> None:
        """Store how long ago Kafka answered this contender (:class:`ContenderNote`), each unless a later is stored.

        None leaves what is stored.
        """
        ...

    def read_note(self, owner: ControllerId) -> ContenderNote:
        """The stored note, without what is ``owner``'s own."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LockStore(Protocol):
    """One record of SOFARegistry's ``distribute_lock``, by the store's own time.

    Each method is one statement of its ``distribute_lock.xml``. The return values of the changing statements are for
    tests and logs only; the election reads the row again instead. The methods raise the same errors as those of
    :class:`LeaseStore`.
    """

    def read(self) -> LockReading:
        """``queryDistLock``: return the row and the store's time."""
        ...

    def read_all(self) -> Sequence[LockReading]:
        """Return every row of the cluster, of any data centre and name."""
        ...

    def insert(self, owner: ControllerId, duration_ms: int, first_term: int) -> bool:
        """``competeLockOnInsert``: create the row unless there is one; return whether it was created."""
        ...

    def take_over(self, new_owner: ControllerId, seen: LockRecord) -> bool:
        """``competeLockOnUpdate``: set a new owner and a new term, with no renewals; return whether it was done.

        Only if owner, term and renewals are as seen and more than the seen duration has passed, in whole seconds.
        """
        ...

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """``ownerHeartbeat``: count one more renewal if the row's owner is as seen; return whether it was done.

        ``guarded`` also requires that term and renewals are as seen and that less than the seen duration has passed, in
        whole seconds.
        """
        ...

    def force_refresh(self, owner: ControllerId, duration_ms: int) -> bool:
        """``forceRefresh``: set duration and modification time if ``owner`` is the row's; return whether it is."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

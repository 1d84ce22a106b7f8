"""What the services need from the world: a fake and a real adapter for each protocol, under one contract suite.

Topic names are without the cluster's prefix. Lost races are return values; an exception means that the other side did
not answer (``RetryableError``), that another writer took over (``FencedError``), or that the call was wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from controlplane.core.identifiers import ControllerId, Term, TopicPartition


class RawRecord(NamedTuple):
    """A record as it stands in a topic."""

    topic: str
    partition: int
    offset: int
    append_time_ms: int
    key: bytes | None
    value: bytes | None


class OutgoingRecord(NamedTuple):
    """A record to append; ``partition`` None lets the key choose, ``value`` None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int | None = None


class PolledBatch(NamedTuple):
    """Records in order per partition, and the partitions whose end was reached after these records."""

    records: Sequence[RawRecord]
    ended: frozenset[TopicPartition]


class LogReader(Protocol):
    """Reads topics in read_committed from positions that the caller keeps; never a consumer group.

    Not thread-safe. Every method that asks the broker raises ``LogUnavailableError`` when it does not answer.
    """

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...

    def offsets_at_time(self, topic: str, time_ms: int) -> dict[TopicPartition, int]:
        """For each partition the first offset appended at or after the time; the end where there is none."""
        ...

    def start_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The first offset that is still kept, for each partition."""
        ...

    def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The offset after the last committed record (the last stable offset), for each partition."""
        ...

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others; replaces what was assigned before.

        An offset that is no longer kept raises ``LogContinuityError`` from :meth:`poll`: nothing is skipped in silence.
        """
        ...

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """At most ``max_records`` records; returns early with what is there, and empty after ``timeout_ms``.

        A broker that is away gives empty batches: the reader reconnects by itself.
        """
        ...

    def close(self) -> None:
        """Give everything back; further calls are errors."""
        ...


class CommitOutcome(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """Nothing of it is in the log; the same records may be committed again."""
    FENCED = "fenced"
    """Another producer has this transactional id, or the transaction timed out: this writer is finished."""
    UNKNOWN = "unknown"
    """No answer: it may be in the log. Only :meth:`TransactionalWriter.resolve` may follow."""


class TransactionalWriter(Protocol):
    """Appends groups of records atomically under the cluster's transactional id. One thread only."""

    def open(self) -> None:
        """Fence every earlier writer with this transactional id and abort its open transaction.

        Raises:
            LogUnavailableError: the broker did not answer in time.
            FencedError: a later writer opened meanwhile.
        """
        ...

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """Append all or nothing."""
        ...

    def resolve(self, timeout_ms: int) -> CommitOutcome:
        """Ask again for the outcome of a commit that was ``UNKNOWN``."""
        ...

    def close(self) -> None:
        """Give everything back; an open transaction is left to the broker to abort."""
        ...


class Delivery(NamedTuple):
    """What became of one record: its place, or the reason why it was given up."""

    topic: str
    partition: int
    offset: int
    append_time_ms: int
    error: str | None


class EventWriter(Protocol):
    """Appends single records idempotently, in order per key. Thread-safe."""

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """Queue a record; ``on_delivery`` is called from :meth:`poll` or :meth:`flush`, never from here.

        Raises:
            LogUnavailableError: the queue is full because the broker has been away for long.
        """
        ...

    def poll(self, timeout_ms: int) -> None:
        """Run the callbacks of what was delivered meanwhile."""
        ...

    def flush(self, timeout_ms: int) -> int:
        """Wait until everything is delivered or given up; returns how many records are still queued."""
        ...

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...

    def close(self) -> None:
        """Flush briefly and give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """The caller holds the lease; ``term`` is greater than every term granted or named as a floor before."""

    term: Term


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The caller still holds the lease, for a whole duration from before the request."""

    term: Term


@dataclass(frozen=True, slots=True)
class LeaseHeld:
    """Somebody else holds it."""

    owner: ControllerId
    term: Term
    remaining_ms: int


@dataclass(frozen=True, slots=True)
class LeaseMissing:
    """Nobody holds it: it ran out, was given back, or the store lost its data."""


AcquireOutcome: TypeAlias = LeaseGranted | LeaseHeld
RenewOutcome: TypeAlias = LeaseRenewed | LeaseHeld | LeaseMissing


class LeaseStore(Protocol):
    """The lease, by the store's own time. Every method raises ``LeaseStoreUnavailableError`` without an answer."""

    def acquire(self, owner: ControllerId, floor: Term, duration_ms: int) -> AcquireOutcome:
        """Take the lease if it is free, run out, or the owner's own.

        The new term is max(stored term, floor) + 1, also when the owner held it already.
        """
        ...

    def renew(self, owner: ControllerId, term: Term, duration_ms: int) -> RenewOutcome:
        """Prolong the lease if owner and term are the stored ones."""
        ...

    def release(self, owner: ControllerId, term: Term) -> bool:
        """Give the lease back if owner and term are the stored ones; the stored term stays. True if it was ours."""
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


class Clock(Protocol):
    """Time for drivers; the core gets it as an argument."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970: carried for people, never trusted."""
        ...

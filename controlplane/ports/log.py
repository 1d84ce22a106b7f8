"""The log: reading it, adding single records to it, and committing many records in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from controlplane.core.values.identifiers import TopicPartition


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
    """Records in order per partition, and the partitions whose end was reached after these records.

    An end that was told may be told again, though nothing was appended.
    """

    records: Sequence[RawRecord]
    ended: frozenset[TopicPartition]


class LogReader(Protocol):
    """Reads topics in read_committed from positions that the caller keeps; never a consumer group.

    Not thread-safe. Every method that asks the broker raises ``LogUnavailableError`` when it does not answer, and
    ``ConfigurationError`` when it refuses this client's login or does not let it read the topic.
    """

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """For each partition the first offset appended at or after the time; the end where there is none.

        A partition without a leader makes this, and the two that follow, raise ``LogUnavailableError``; with
        ``only_answering`` it is left out.
        """
        ...

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """The first offset that is still kept, for each partition."""
        ...

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
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
            ConfigurationError: the broker refuses this client's login, or the transactional id to it.
        """
        ...

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """Append all or nothing.

        Raises:
            ConfigurationError: the broker refuses a record for good: too large, or this client may not write there.
        """
        ...

    def resolve(self, timeout_ms: int) -> CommitOutcome:
        """Ask again for the outcome of a commit that was ``UNKNOWN``.

        Raises:
            ConfigurationError: as :meth:`commit`.
        """
        ...

    def close(self) -> None:
        """Give everything back; an open transaction is left to the broker to abort."""
        ...


class Delivery(NamedTuple):
    """What became of one record: its place, or the reason why it was given up.

    ``denied`` means that the log does not allow this writer to write there: sending it again does not help.
    """

    topic: str
    partition: int
    offset: int
    append_time_ms: int
    error: str | None
    denied: bool = False


class EventWriter(Protocol):
    """Appends single records idempotently, in order per key. Thread-safe.

    A record that was given up may arrive later than those that were sent after it.
    """

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """Queue a record; ``on_delivery`` is called from :meth:`poll` or :meth:`flush`, never from here.

        Raises:
            LogUnavailableError: the queue is full because the broker has been away for long.
            ConfigurationError: the record is too large.
        """
        ...

    def poll(self, timeout_ms: int) -> None:
        """Run the callbacks of what was delivered meanwhile, and tell what the client has to say of its broker.

        Whoever owns a writer polls it now and then: both gather until somebody does.
        """
        ...

    @property
    def awaits_delivery(self) -> bool:
        """Whether a record was sent whose callback has not run: while there is none, polling now and then will do."""
        ...

    def flush(self, timeout_ms: int) -> int:
        """Wait until everything is delivered or given up; returns how many records are still queued."""
        ...

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has.

        Raises:
            LogUnavailableError: the broker did not answer in time.
            ConfigurationError: the broker refuses this client's login, or this client may not look at the topic.
        """
        ...

    def close(self) -> None:
        """Flush briefly and give everything back."""
        ...

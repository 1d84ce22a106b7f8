"""The log: reading it, adding single records to it, and committing many records in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from controlplane.core.values.identifiers import TopicPartition


class RawRecord(NamedTuple):
    """A record as it is stored in a topic.

    Attributes:
        append_time_ms: the time with which the topic keeps the record, in milliseconds since 1970.
        is_append_time: whether a broker's clock gave that time. Where a topic keeps the time at which a record was
            created (``message.timestamp.type=CreateTime``), the clock of the record's sender gave it.
    """

    topic: str
    partition: int
    offset: int
    append_time_ms: int
    key: bytes | None
    value: bytes | None
    is_append_time: bool = True


class OutgoingRecord(NamedTuple):
    """A record to append. With ``partition`` None the key determines the partition; ``value`` None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int | None = None


class PartitionEnd(NamedTuple):
    """The end of a partition as far as the answering broker knows it, which is not always the partition's leader.

    A former leader that was not told of its successor, and a new leader whose high watermark lags, report an end that
    lies before records that other clients have been told of. A reader that has to know of every committed record
    therefore compares the offset with one that it knows otherwise, such as that of a barrier.

    Attributes:
        offset: the last stable offset: every committed record before it was returned.
        high_watermark: the end with the records behind an open transaction. While it is above ``offset``, readers wait
            for the end of a transaction, which may be committed already.
    """

    offset: int
    high_watermark: int

    @property
    def awaits_marker(self) -> bool:
        """Whether readers wait for the end of a transaction, or for its marker."""
        return self.offset < self.high_watermark


class PolledBatch(NamedTuple):
    """Records in order per partition, and the partitions whose end was reached after these records, with those ends.

    The same end may be reported more than once although nothing was appended.

    Attributes:
        high_watermarks: of partitions with records in the batch, as a fetch since :meth:`LogReader.assign` told it; a
            later fetch with each batch. A partition whose high watermark the client does not know is missing.
    """

    records: Sequence[RawRecord]
    ended: Mapping[TopicPartition, PartitionEnd]
    high_watermarks: Mapping[TopicPartition, int] = MappingProxyType({})


class LogReader(Protocol):
    """Reads topics in read_committed from positions that the caller keeps; it never joins a consumer group.

    Not thread-safe. Every method that asks the broker raises ``LogUnavailableError`` if it does not answer, and
    ``ConfigurationError`` if it refuses this client's login or denies it to read the topic.
    """

    def partition_count(self, topic: str) -> int:
        """The number of partitions of the topic."""
        ...

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """For each partition the first offset appended at or after the time; the end if there is none.

        For a partition without a leader, this method and the two that follow raise ``LogUnavailableError``; with
        ``only_answering`` they leave the partition out.
        """
        ...

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """The first offset that is still kept, for each partition."""
        ...

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """The offset after the last committed record (the last stable offset), for each partition."""
        ...

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others; the former assignment is replaced.

        An offset that is no longer kept raises ``LogContinuityError`` from :meth:`poll`: no record is skipped silently.
        One beyond the end raises it after 15 s, because the broker that answers may have lost the partition to another
        one that has more; until then nothing comes from there.
        """
        ...

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Return at most ``max_records`` records: at once if there are any, empty after ``timeout_ms``.

        While the broker is unreachable the batches are empty; the reader reconnects by itself.
        """
        ...

    def close(self) -> None:
        """Release every resource; the reader must not be used afterwards."""
        ...


class CommitOutcome(Enum):
    """The outcome of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """None of its records is in the log; the same records may be committed again."""
    FENCED = "fenced"
    """Another producer has this transactional id, or the transaction timed out; this writer cannot be used any more."""
    UNKNOWN = "unknown"
    """No answer: the records may be in the log. Only :meth:`TransactionalWriter.resolve` may follow."""


class TransactionalWriter(Protocol):
    """Appends groups of records atomically under the cluster's transactional id. Not thread-safe."""

    @property
    def transaction_timeout_ms(self) -> int:
        """Time after which the broker aborts an open transaction and fences its writer."""
        ...

    def open(self) -> None:
        """Fence every earlier writer with this transactional id and abort its open transaction.

        Raises:
            LogUnavailableError: the broker did not answer in time.
            FencedError: a later writer opened meanwhile.
            ConfigurationError: the broker refuses this client's login, or denies it the transactional id.
        """
        ...

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """Append all of the records, or none.

        Raises:
            ConfigurationError: the broker refuses a record permanently: it is too large, or this client has no right to
                write there.
        """
        ...

    def write_barrier(self, records: Sequence[OutgoingRecord]) -> dict[TopicPartition, int]:
        """Append records and abort them: no reader sees them, but every end at or behind them is up to date.

        Every record that was acknowledged before, by any writer, has a lower offset in its partition. A reader that is
        told of an end at the returned offset or later has therefore read all of them.

        Returns:
            For each partition of the records the offset of the last one, which all in-sync copies hold.

        Raises:
            LogUnavailableError: the broker did not acknowledge the records, or not their end; only :meth:`close` may
                follow.
            FencedError: another writer opened meanwhile.
            ConfigurationError: see :meth:`commit`.
        """
        ...

    def resolve(self, timeout_ms: int) -> CommitOutcome:
        """Ask again for the outcome of a commit that was ``UNKNOWN``.

        Raises:
            ConfigurationError: see :meth:`commit`.
        """
        ...

    def close(self) -> None:
        """Release every resource; the broker aborts an open transaction after its timeout."""
        ...


class Delivery(NamedTuple):
    """The result of sending one record: its place, or the reason why it was given up.

    ``denied`` means that this writer has no right to write there, so that sending the record again does not help.
    """

    topic: str
    partition: int
    offset: int
    append_time_ms: int
    error: str | None
    denied: bool = False


class EventWriter(Protocol):
    """Appends single records idempotently, in order per key. Thread-safe.

    A record that was reported as given up may still arrive, also after records that were sent later.
    """

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """Queue a record; ``on_delivery`` is called from :meth:`poll` or :meth:`flush`, never from this method.

        A callback may send further records. It must not poll or flush, which are refused there.

        Raises:
            LogUnavailableError: the queue is full, because the broker has been unreachable for long.
            ConfigurationError: the record is too large.
        """
        ...

    def poll(self, timeout_ms: int) -> None:
        """Run the callbacks of deliveries and process the client's reports about its broker.

        The owner of a writer has to call this regularly: both accumulate until then.

        Raises:
            RuntimeError: called in a delivery callback of this writer.
        """
        ...

    @property
    def awaits_delivery(self) -> bool:
        """Whether a callback of a sent record is outstanding; if not, occasional polling suffices."""
        ...

    def flush(self, timeout_ms: int) -> int:
        """Wait until everything is delivered or given up; return the number of records that are still queued.

        Raises:
            RuntimeError: called in a delivery callback of this writer.
        """
        ...

    def partition_count(self, topic: str) -> int:
        """The number of partitions of the topic.

        Raises:
            LogUnavailableError: the broker did not answer in time.
            ConfigurationError: the broker refuses this client's login, or denies it to describe the topic.
        """
        ...

    def close(self) -> None:
        """Flush for a short time and release every resource."""
        ...

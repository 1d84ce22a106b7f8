"""The three clients of the in-memory broker, counterparts of :mod:`controlplane.adapters.kafka_log`.

They never wait: without anything to read or deliver they return at once, because only the test advances time. Setting
``connected = False`` cuts one client off from the broker.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import (
    ConfigurationError,
    FencedError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
)
from controlplane.ports import CommitOutcome, Delivery, OutgoingRecord, PolledBatch, RawRecord
from controlplane.testing.memory_broker import CommitFault, MemoryBroker, PendingSend, unavailable
from controlplane.testing.memory_partition import MemoryPartition, MemoryTransaction, TransactionState

_MESSAGE_TIMEOUT_MS = 2_500
_TRANSACTION_TIMEOUT_MS = 5_000
_QUEUE_LIMIT = 100_000
_RECORD_LIMIT_BYTES = 1_048_588


class MemoryLogReader:
    """Implements :class:`controlplane.ports.LogReader` in read_committed.

    Attributes:
        connected: False cuts this client off, and no other one.
        held_back: partitions from which this reader gets nothing for now.
    """

    def __init__(self, cluster: ClusterConfig, broker: MemoryBroker) -> None:
        """Connect to the shared broker."""
        self.connected = True
        self.held_back: Collection[TopicPartition] = ()
        self._cluster = cluster
        self._broker = broker
        self._positions: dict[TopicPartition, int] = {}
        self._names: dict[str, str] = {}
        self._end_told_at: dict[TopicPartition, int] = {}

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.LogReader.partition_count`."""
        return len(self._partitions(topic))

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.offsets_at_time`."""
        return self._of_each(topic, lambda partition: partition.offset_at_time(time_ms), only_answering=only_answering)

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.start_offsets`."""
        return self._of_each(topic, lambda partition: partition.start_offset, only_answering=only_answering)

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.end_offsets`."""
        return self._of_each(topic, lambda partition: partition.last_stable_offset, only_answering=only_answering)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See :meth:`controlplane.ports.LogReader.assign`.

        Raises:
            InvariantViolationError: an offset is negative.
        """
        if any(offset < 0 for offset in positions.values()):
            raise InvariantViolationError(f"offsets to read from have to be 0 or more, not {dict(positions)}")
        self._positions = dict(positions)
        self._names = {place.topic: self._cluster.topic(place.topic) for place in positions}
        self._end_told_at = {}

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.LogReader.poll`; never waits."""
        records: list[RawRecord] = []
        ended: set[TopicPartition] = set()
        with self._broker.lock:
            self._broker.settle()
            if self.connected and self._broker.available:
                for place in self._positions:
                    self._read(place, max_records - len(records), records, ended)
        return PolledBatch(records, frozenset(ended))

    def close(self) -> None:
        """Release everything."""
        self.connected = False
        self._positions = {}

    def _read(self, place: TopicPartition, room: int, records: list[RawRecord], ended: set[TopicPartition]) -> None:
        """Read one partition from its position; report its end, once, if nothing follows.

        As with Kafka, only a poll that finds no record of the partition reports its end.
        """
        if self._has_nothing_new(place):
            return
        partition = self._partition_at(place)
        if partition is None:
            return
        found, self._positions[place] = partition.read(self._positions[place], room)
        records.extend(
            RawRecord(place.topic, place.partition, record.offset, record.append_time_ms, record.key, record.value)
            for record in found
        )
        reached = self._positions[place]
        if not found and reached >= partition.last_stable_offset and self._end_told_at.get(place) != reached:
            self._end_told_at[place] = reached
            ended.add(place)

    def _has_nothing_new(self, place: TopicPartition) -> bool:
        """Whether the end was reported and nothing was appended since, the most frequent case."""
        partition = self._broker.find_partition(self._names[place.topic], place.partition)
        return partition is not None and self._positions[
            place
        ] == partition.last_stable_offset == self._end_told_at.get(place)

    def _partition_at(self, place: TopicPartition) -> MemoryPartition | None:
        """The partition to read from; None if it has no leader, which Kafka's client does not report either."""
        name = self._names[place.topic]
        if place in self.held_back or not self._broker.has_leader(name, place.partition):
            return None
        partition = self._broker.find_partition(name, place.partition)
        if partition is None:
            return None
        position = self._positions[place]
        if not partition.is_in_range(position):
            raise LogContinuityError(
                f"{name}[{place.partition}]@{position} is not there: it keeps {partition.start_offset} to "
                f"{partition.end_offset}; the records were deleted, or the topic was recreated"
            )
        return partition

    def _partitions(self, topic: str) -> list[MemoryPartition]:
        self._broker.settle()
        if not (self.connected and self._broker.available):
            raise unavailable(topic)
        return self._broker.partitions(self._cluster.topic(topic))

    def _of_each(
        self, topic: str, offset: Callable[[MemoryPartition], int], *, only_answering: bool
    ) -> dict[TopicPartition, int]:
        with self._broker.lock:
            partitions = self._partitions(topic)
            led = {
                TopicPartition(topic, number): offset(partition)
                for number, partition in enumerate(partitions)
                if self._broker.has_leader(self._cluster.topic(topic), number)
            }
            if len(led) < len(partitions) and not only_answering:
                raise unavailable(topic)
            return led


class MemoryTransactionalWriter:
    """Implements :class:`controlplane.ports.TransactionalWriter`.

    A commit while the broker is unreachable returns ``UNKNOWN`` and appends nothing yet. Resolving it sends the records
    once the broker is back, or reports the writer as fenced if that took longer than the transaction timeout.
    """

    def __init__(
        self, cluster: ClusterConfig, broker: MemoryBroker, transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    ) -> None:
        """Set up; :meth:`open` has to follow."""
        self.connected = True
        self._cluster = cluster
        self._broker = broker
        self._timeout_ms = transaction_timeout_ms
        self._epoch = 0
        self._transaction: MemoryTransaction | None = None
        self._unsent: tuple[Sequence[OutgoingRecord], int] | None = None

    def open(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.open`."""
        if not self._reachable:
            raise unavailable(self._cluster.transactional_id)
        self._transaction, self._unsent = None, None
        self._epoch = self._broker.init_transactions(self._cluster.transactional_id, self._timeout_ms)

    def commit(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """See :meth:`controlplane.ports.TransactionalWriter.commit`.

        Raises:
            InvariantViolationError: the writer is not open, there are no records, or the last commit is unresolved.
        """
        if not self._epoch or not records or self._transaction or self._unsent:
            raise InvariantViolationError(
                "commit needs an open writer, at least one record, and no unresolved commit before it"
            )
        if not self._reachable:
            self._unsent = (records, self._broker.now_ms())
            return CommitOutcome.UNKNOWN
        try:
            return self._send(records)
        except FencedError:
            return self._fenced()

    def resolve(self, timeout_ms: int) -> CommitOutcome:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.TransactionalWriter.resolve`; never waits.

        Raises:
            InvariantViolationError: the outcome of no commit is unknown.
        """
        if self._transaction is None and self._unsent is None:
            raise InvariantViolationError("there is no unknown commit to resolve")
        if not self._reachable:
            return CommitOutcome.UNKNOWN
        try:
            if self._unsent is not None:
                (records, since_ms), self._unsent = self._unsent, None
                if self._broker.now_ms() - since_ms > self._timeout_ms:
                    return self._fenced()
                return self._send(records)
            return self._end(TransactionState.COMMITTED)
        except FencedError:
            return self._fenced()

    def close(self) -> None:
        """Release everything; the broker aborts an open transaction after its timeout."""
        self.connected = False

    @property
    def _reachable(self) -> bool:
        self._broker.settle()
        return self.connected and self._broker.available

    def _send(self, records: Sequence[OutgoingRecord]) -> CommitOutcome:
        """Append the records and end the transaction, with the fault that was requested for it, if any."""
        transactional_id = self._cluster.transactional_id
        self._transaction = self._broker.append_in_transaction(
            transactional_id, self._epoch, [self._placed(record) for record in records]
        )
        self._broker.while_open()
        if not self._reachable:
            return CommitOutcome.UNKNOWN
        match self._broker.take_fault():
            case CommitFault.ANSWER_LOST_AFTER_COMMIT:
                self._broker.end_transaction(transactional_id, self._transaction, TransactionState.COMMITTED)
                return CommitOutcome.UNKNOWN
            case CommitFault.ANSWER_LOST_BEFORE_COMMIT:
                return CommitOutcome.UNKNOWN
            case CommitFault.ABORTED:
                return self._end(TransactionState.ABORTED)
            case CommitFault.FENCED:
                self._broker.time_out_transaction(transactional_id)
                return self._end(TransactionState.COMMITTED)
            case None:
                return self._end(TransactionState.COMMITTED)

    def _end(self, state: TransactionState) -> CommitOutcome:
        transaction = self._transaction
        if transaction is None:
            raise InvariantViolationError("there is no transaction to end")
        self._broker.end_transaction(self._cluster.transactional_id, transaction, state)
        self._transaction = None
        return CommitOutcome.COMMITTED if transaction.state is TransactionState.COMMITTED else CommitOutcome.ABORTED

    def _fenced(self) -> CommitOutcome:
        self._epoch = 0
        self._transaction, self._unsent = None, None
        return CommitOutcome.FENCED

    def _placed(self, record: OutgoingRecord) -> tuple[str, int, bytes, bytes | None]:
        _refuse_too_large(record)
        name = self._cluster.topic(record.topic)
        partition = record.partition
        if partition is None:
            partition = partition_of(record.key, len(self._broker.partitions(name)))
        return name, partition, record.key, record.value


class MemoryEventWriter:
    """Implements :class:`controlplane.ports.EventWriter`.

    Args:
        message_timeout_ms: time without the broker after which a record is given up.
        queue_limit: the greatest number of queued records.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        broker: MemoryBroker,
        message_timeout_ms: int = _MESSAGE_TIMEOUT_MS,
        queue_limit: int = _QUEUE_LIMIT,
    ) -> None:
        """Connect to the shared broker."""
        self.connected = True
        self._cluster = cluster
        self._broker = broker
        self._message_timeout_ms = message_timeout_ms
        self._queue_limit = queue_limit
        self._lock = threading.Lock()
        self._waiting = 0
        self._last_due_ms = 0
        self._delivered: deque[tuple[Callable[[Delivery], None] | None, Delivery]] = deque()

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """
        _refuse_too_large(record)
        with self._lock:
            if self._waiting >= self._queue_limit:
                raise LogUnavailableError(
                    f"the queue is full: {self._waiting} records wait for the broker; try again when it is back"
                )
            self._waiting += 1
        name = self._cluster.topic(record.topic)
        partition = record.partition
        if partition is None:
            count = len(self._broker.partitions(name)) if self._broker.has_topic(name) else 1
            partition = partition_of(record.key, count)

        def complete(delivery: Delivery) -> None:
            self._delivered.append((on_delivery, delivery._replace(topic=record.topic)))

        with self._broker.lock:
            now_ms = self._broker.now_ms()
            # A shorter delay must not let a record overtake an earlier one.
            self._last_due_ms = max(self._last_due_ms, now_ms + self._broker.delivery_delay_ms)
            self._broker.send(
                PendingSend(
                    topic=name,
                    partition=partition,
                    key=record.key,
                    value=record.value,
                    due_ms=self._last_due_ms,
                    expires_ms=now_ms + self._message_timeout_ms,
                    is_connected=lambda: self.connected,
                    complete=complete,
                )
            )

    def poll(self, timeout_ms: int) -> None:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.EventWriter.poll`; never waits."""
        self._broker.settle()
        while self._delivered:
            on_delivery, delivery = self._delivered.popleft()
            with self._lock:
                self._waiting -= 1
            if on_delivery is not None:
                on_delivery(delivery)

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        return self._waiting > 0

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`; never waits."""
        self.poll(timeout_ms)
        return self._waiting

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`."""
        if not (self.connected and self._broker.available):
            raise unavailable(topic)
        return len(self._broker.partitions(self._cluster.topic(topic)))

    def close(self) -> None:
        """Flush and release everything."""
        self.flush(0)
        self.connected = False


def _refuse_too_large(record: OutgoingRecord) -> None:
    """Apply Kafka's default limit; the few bytes that Kafka adds to a record are not counted."""
    size_bytes = len(record.key) + len(record.value or b"")
    if size_bytes > _RECORD_LIMIT_BYTES:
        raise ConfigurationError(
            f"a record for {record.topic}, key {record.key!r}, of {size_bytes} bytes is too large: "
            f"at most {_RECORD_LIMIT_BYTES} fit"
        )

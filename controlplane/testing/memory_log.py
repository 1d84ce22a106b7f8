"""Two of the clients of the in-memory broker, counterparts of :mod:`controlplane.adapters.kafka_log`.

They never wait: without anything to read or deliver they return at once, because only the test advances time. Setting
``connected = False`` cuts one client off from the broker.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping

from controlplane.config import ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.errors import (
    ConfigurationError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
)
from controlplane.ports import Delivery, OutgoingRecord, PartitionEnd, PolledBatch, RawRecord
from controlplane.ports.callbacks import CallbackGuard
from controlplane.testing.memory_broker import MemoryBroker, unavailable
from controlplane.testing.memory_partition import LeadingBroker, MemoryPartition
from controlplane.testing.memory_sends import PendingSend

_MESSAGE_TIMEOUT_MS = 2_500
_QUEUE_LIMIT = 100_000
BEYOND_END_LIMIT_MS = 15_000
"""How long a reader waits for a broker that has the offset, if the one that answers leads the partition no longer."""
_RECORD_LIMIT_BYTES = 1_048_588


class MemoryLogReader:
    """Implements :class:`controlplane.ports.LogReader` in read_committed.

    Attributes:
        connected: False cuts this client off, and no other one.
        held_back: partitions from which this reader gets nothing for now.
        stale_ends: partitions of which this reader asks a broker that no longer leads them and was not told so, each
            with the last stable offset that this broker knows. A position beyond it gets nothing, and an error after
            15 s.
        unreachable: brokers that this reader cannot reach, while others can.
    """

    def __init__(self, cluster: ClusterConfig, broker: MemoryBroker) -> None:
        """Connect to the shared broker."""
        self.connected = True
        self.held_back: Collection[TopicPartition] = ()
        self.stale_ends: Mapping[TopicPartition, int] = {}
        self.unreachable: Collection[LeadingBroker] = ()
        self._cluster = cluster
        self._broker = broker
        self._positions: dict[TopicPartition, int] = {}
        self._names: dict[str, str] = {}
        self._end_told_at: dict[TopicPartition, int] = {}
        self._beyond_since_ms: dict[TopicPartition, int] = {}

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.LogReader.partition_count`."""
        return len(self._partitions(topic))

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.offsets_at_time`."""
        return self._of_each(
            topic, lambda each, stable: each.offset_at_time(time_ms, stable), only_answering=only_answering
        )

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.start_offsets`."""
        return self._of_each(topic, lambda each, _: each.start_offset, only_answering=only_answering)

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.end_offsets`."""
        return self._of_each(topic, lambda _, stable: stable, only_answering=only_answering)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See :meth:`controlplane.ports.LogReader.assign`.

        Raises:
            InvariantViolationError: an offset is negative.
        """
        if any(offset < 0 for offset in positions.values()):
            raise InvariantViolationError(f"offsets to read from have to be 0 or more, not {dict(positions)}")
        self._positions = dict(positions)
        self._names = {place.topic: self._cluster.topic(place.topic) for place in positions}
        self._end_told_at, self._beyond_since_ms = {}, {}

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.LogReader.poll`; never waits."""
        records: list[RawRecord] = []
        ended: dict[TopicPartition, PartitionEnd] = {}
        high_watermarks: dict[TopicPartition, int] = {}
        with self._broker.lock:
            self._broker.settle()
            if self.connected and self._broker.available:
                for place in self._positions:
                    before = len(records)
                    end = self._read(place, max_records - before, records)
                    if end is not None and len(records) > before:
                        high_watermarks[place] = end.high_watermark
                    elif end is not None:
                        ended[place] = end
        return PolledBatch(records, ended, high_watermarks)

    def close(self) -> None:
        """Release everything."""
        self.connected = False
        self._positions = {}

    def _read(self, place: TopicPartition, room: int, records: list[RawRecord]) -> PartitionEnd | None:
        """Read one partition from its position. Returns how far it is read, with records or, once, at its end.

        As with Kafka, only a poll that finds no record of the partition reports its end.
        """
        if self._has_nothing_new(place):
            return None
        partition = self._partition_at(place)
        if partition is None:
            return None
        stable = self._stable(place, partition)
        found, self._positions[place] = partition.read(self._positions[place], room, stable)
        records.extend(
            RawRecord(
                place.topic,
                place.partition,
                record.offset,
                record.append_time_ms,
                record.key,
                record.value,
                record.is_append_time,
            )
            for record in found
        )
        reached = self._positions[place]
        if not found:
            if reached < stable or self._end_told_at.get(place) == reached:
                return None
            self._end_told_at[place] = reached
        high_watermark = stable if place in self.stale_ends else partition.end_offset
        return PartitionEnd(reached, max(reached, high_watermark))

    def _stable(self, place: TopicPartition, partition: MemoryPartition) -> int:
        """The last stable offset that the answering broker knows."""
        stable = partition.last_stable_offset
        return min(self.stale_ends.get(place, stable), stable)

    def _has_nothing_new(self, place: TopicPartition) -> bool:
        """Whether the end was reported and nothing was appended since, the most frequent case."""
        partition = self._broker.find_partition(self._names[place.topic], place.partition)
        return partition is not None and (
            self._positions[place] == self._stable(place, partition) == self._end_told_at.get(place)
        )

    def _partition_at(self, place: TopicPartition) -> MemoryPartition | None:
        """The partition to read from; None if it has no leader, which Kafka's client does not report either.

        None also for some time if the answering broker ends the partition before the position, whether it leads the
        partition no longer or has lost the end: a reader cannot tell the one from the other.
        """
        name = self._names[place.topic]
        if place in self.held_back or not self._broker.has_leader(name, place.partition):
            return None
        partition = self._broker.find_partition(name, place.partition)
        if partition is None or partition.leader in self.unreachable:
            return None
        position = self._positions[place]
        known_end = min(self.stale_ends.get(place, partition.end_offset), partition.end_offset)
        is_beyond = position > partition.end_offset and not partition.has_lost_end
        if position < partition.start_offset or is_beyond:
            raise _out_of_range(f"{name}[{place.partition}]@{position}", partition.start_offset, known_end)
        if position <= known_end:
            self._beyond_since_ms.pop(place, None)
            return partition
        now_ms = self._broker.now_ms()
        if now_ms - self._beyond_since_ms.setdefault(place, now_ms) < BEYOND_END_LIMIT_MS:
            return None
        raise _out_of_range(f"{name}[{place.partition}]@{position}", partition.start_offset, known_end)

    def _partitions(self, topic: str) -> list[MemoryPartition]:
        self._broker.settle()
        if not (self.connected and self._broker.available):
            raise unavailable(topic)
        return self._broker.partitions(self._cluster.topic(topic))

    def _of_each(
        self, topic: str, offset: Callable[[MemoryPartition, int], int], *, only_answering: bool
    ) -> dict[TopicPartition, int]:
        with self._broker.lock:
            partitions = self._partitions(topic)
            led = {
                (place := TopicPartition(topic, number)): offset(partition, self._stable(place, partition))
                for number, partition in enumerate(partitions)
                if self._broker.has_leader(self._cluster.topic(topic), number)
                and partition.leader not in self.unreachable
            }
            if len(led) < len(partitions) and not only_answering:
                raise unavailable(topic)
            return led


def _out_of_range(place: str, start: int, end: int) -> LogContinuityError:
    return LogContinuityError(
        f"{place} is not there: it keeps {start} to {end}; the records were deleted, or the topic was recreated"
    )


class MemoryEventWriter:
    """Implements :class:`controlplane.ports.EventWriter`.

    Attributes:
        connected: False cuts this client off, and no other one.
        unreachable: brokers that this writer cannot reach, while others can.

    Args:
        message_timeout_ms: time without the broker after which a record is given up.
        queue_limit: the greatest number of queued records.

    Attributes:
        connected: False cuts this client off, and no other one.
        ahead_ms: by how much the wall clock of this writer's machine is ahead of the broker's. It shows where a topic
            keeps the sender's time.
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
        self.ahead_ms = 0
        self._cluster = cluster
        self._broker = broker
        self.unreachable: Collection[LeadingBroker] = ()
        self._message_timeout_ms = message_timeout_ms
        self._queue_limit = queue_limit
        self._lock = threading.Lock()
        self._callbacks = CallbackGuard()
        self._waiting = 0
        self._last_due_ms = 0
        self._delivered: deque[tuple[Callable[[Delivery], None] | None, Delivery]] = deque()

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """
        refuse_too_large(record)
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
                    is_connected=lambda: self.connected and not self._is_out_of_reach(name, partition),
                    complete=complete,
                    connection=self,
                    sender_ahead_ms=self.ahead_ms,
                )
            )

    def poll(self, timeout_ms: int) -> None:  # noqa: ARG002 - virtual time cannot be waited for
        """See :meth:`controlplane.ports.EventWriter.poll`; never waits."""
        self._callbacks.refuse_in_callback()
        self._broker.settle()
        while self._delivered:
            on_delivery, delivery = self._delivered.popleft()
            with self._lock:
                self._waiting -= 1
            if on_delivery is not None:
                with self._callbacks.callback():
                    on_delivery(delivery)

    def _is_out_of_reach(self, name: str, number: int) -> bool:
        partition = self._broker.find_partition(name, number) if self.unreachable else None
        return partition is not None and partition.leader in self.unreachable

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


def refuse_too_large(record: OutgoingRecord) -> None:
    """Apply Kafka's default limit; the few bytes that Kafka adds to a record are not counted."""
    size_bytes = len(record.key) + len(record.value or b"")
    if size_bytes > _RECORD_LIMIT_BYTES:
        raise ConfigurationError(
            f"a record for {record.topic}, key {record.key!r}, of {size_bytes} bytes is too large: "
            f"at most {_RECORD_LIMIT_BYTES} fit"
        )

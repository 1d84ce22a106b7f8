"""Reads topics of Kafka: implements the port :class:`controlplane.ports.LogReader`.

The guarantees of the port are implemented as follows:

- Positions are the caller's: partitions are assigned manually, nothing is committed, and no group is joined.
- Only committed records, up to the last stable offset: ``isolation.level=read_committed``.
- No record is skipped silently: ``auto.offset.reset=error``. Once a partition cannot be read any further, every poll
  raises the error until the next assignment. See :mod:`controlplane.adapters.kafka_out_of_range` for offsets that the
  broker that was asked does not have.
- An end is reported after the records before it, and may be reported again.
- The reader reconnects by itself: :class:`ReplaceableConsumer` replaces a consumer that receives nothing.
"""

import time
import uuid
from collections.abc import Mapping
from functools import partial

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters.kafka_client import SOCKET_TIMEOUT_MS, client_settings, new_client
from controlplane.adapters.kafka_errors import (
    Access,
    in_words,
    is_denied,
    is_out_of_range,
    is_truncation,
    reading_error,
)
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_out_of_range import OutOfRangeRetries
from controlplane.adapters.kafka_queries import KafkaQueries
from controlplane.adapters.kafka_replaceable_consumer import ReplaceableConsumer
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import ControlPlaneError, InvariantViolationError, LogUnavailableError, UserError
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord

LEADERS_ASKED_EVERY_MS = 10_000
"""Interval at which a reader asks which brokers lead its partitions. A former leader that has not learned of the new
one yet answers fetches with an outdated end. With the common settings a node would believe it for a minute (decision
0013)."""

_NOTHING = PolledBatch((), {})
_ROLE = "reader"
_END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_MOST_PER_CONSUME = 1_000_000
_FETCH_WAIT_MS = 100
"""Time for which the broker keeps an idle fetch open, and so the interval of an idle reader's fetches. Records come at
once in any case (measured: 2 ms after a commit); the end of a partition is noticed after this time."""
_IDLE_REASSIGN_S = 10.0
"""Time after which a reader at the end of a partition is assigned again, so that the end has to be reported again.
Otherwise a consumer that receives nothing any more could not be told from a partition without new records."""
_MAX_GAP_COUNTED_S = 1.0
"""Of the time between two polls, at most the timeout and this counts as waiting: the caller may have done something
else, or its process may have been stopped."""


class KafkaLogReader:
    """Implements :class:`controlplane.ports.LogReader`. Not thread-safe.

    For a partition that does not exist, :meth:`assign` and :meth:`poll` raise no error and report nothing: ask
    :meth:`partition_count` first.

    Args:
        cluster: determines the prefix of the topics.
        kafka: the servers, and the user's settings.
        request_timeout_ms: time limit of a query about topics or offsets, including its repetitions.
    """

    def __init__(self, cluster: ClusterConfig, kafka: KafkaConfig, *, request_timeout_ms: int = 5_000) -> None:
        """Set up; connections are opened when they are needed."""
        self._cluster = cluster
        self._access = Access(kafka.principal, "read")
        self._logger = structlog.get_logger().bind(cluster=cluster.name)
        make = partial(_new_consumer, cluster, kafka)
        self._consumer = ReplaceableConsumer(cluster.name, _ROLE, make)
        self._queries = KafkaQueries(cluster, self._consumer, make, self._access, request_timeout_ms / 1_000)
        self._names: dict[str | None, str] = {}
        self._broken: ControlPlaneError | None = None
        self._doubts = OutOfRangeRetries()
        self._positions: dict[TopicPartition, int] = {}
        # Whether an end was told without a high watermark, so that it has to be told again.
        self._lacks_end = False
        # The clock of the stall detector: time that the caller spends elsewhere does not count as waiting.
        self._waited_s = 0.0
        self._polled_at_s = time.monotonic()
        self._assigned_at_s = 0.0

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.LogReader.partition_count`.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        return self._queries.partition_count(topic)

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.offsets_at_time`."""
        return self._queries.offsets_at_time(topic, time_ms, only_answering=only_answering)

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.start_offsets`."""
        return self._queries.start_offsets(topic, only_answering=only_answering)

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.end_offsets`; Kafka answers the last stable offset."""
        return self._queries.end_offsets(topic, only_answering=only_answering)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See :meth:`controlplane.ports.LogReader.assign`.

        Raises:
            InvariantViolationError: an offset is negative, which librdkafka would interpret as "the end" or the like.
        """
        if any(offset < 0 for offset in positions.values()):
            raise InvariantViolationError(f"offsets to read from have to be 0 or more, not {dict(positions)}")
        self._broken = None
        self._doubts = OutOfRangeRetries()
        self._names = {self._cluster.topic(place.topic): place.topic for place in positions}
        self._positions = dict(positions)
        self._consumer.stalls.expect_only([self._in_kafka(place) for place in positions])
        self._reassign()

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See :meth:`controlplane.ports.LogReader.poll`.

        Waits for the first record, and takes further ones if they have arrived. ``consume`` alone would wait for the
        whole batch or the whole timeout.

        Raises:
            LogContinuityError: a partition cannot be read any further; raised again until the next :meth:`assign`.
            ConfigurationError: this user has no right to read a topic.
        """
        if self._broken is not None:
            raise self._broken
        consumer = self._consumer.current
        first = consumer.poll(timeout_ms / 1_000)
        self._queries.serve()
        self._consumer.listener.new_leaders.ask(consumer, (name for name in self._names if name is not None))
        self._count_waiting(timeout_ms / 1_000)
        messages = [] if first is None else [first]
        if messages and max_records > 1:
            messages += consumer.consume(min(max_records - 1, _MOST_PER_CONSUME), 0)
        # Where more of the same replies may wait, the mark of the last one would be told twice.
        batch = self._sorted_out(messages, tells_marks=len(messages) < max_records) if messages else _NOTHING
        if self._lacks_end and self._broken is None:
            self._reassign()
        if len(messages) < max_records and self._broken is None:
            cause = self._doubts.cause_to_replace(self._waited_s)
            if cause is not None:
                self._consumer.replace(cause)
                self._reassign()
            self._consumer.check(self._waited_s, self._reassign)
            self._ask_for_ends_again()
        return batch

    def close(self) -> None:
        """Release every resource; the reader must not be used afterwards."""
        self._consumer.close()
        self._queries.close()

    def _sorted_out(self, messages: list[Message], *, tells_marks: bool) -> PolledBatch:
        """Separate records, ends of partitions and errors; records before an error are returned first."""
        names, positions, stalls = self._names, self._positions, self._consumer.stalls
        records: list[RawRecord] = []
        ended: dict[TopicPartition, PartitionEnd] = {}
        arrived: set[TopicPartition] = set()
        brought: set[TopicPartition] = set()
        for message in messages:
            error = message.error()
            if error is None:
                time_type, time_ms = message.timestamp()
                record = RawRecord(
                    names[message.topic()],
                    message.partition(),  # type: ignore[arg-type] # a record without error has a place
                    message.offset(),  # type: ignore[arg-type] # as above
                    time_ms,
                    message.key(),
                    message.value(),
                    time_type == TIMESTAMP_LOG_APPEND_TIME,
                )
                records.append(record)
                place = TopicPartition(record.topic, record.partition)
                positions[place] = record.offset + 1
                arrived.add(place)
                brought.add(place)
                ended.pop(place, None)
                continue
            if error.code() == _END_OF_PARTITION:
                place = TopicPartition(names[message.topic()], message.partition() or 0)
                offset = message.offset() or 0
                mark = self._high_watermark(place, offset)
                if mark is None:
                    self._lacks_end = True
                else:
                    ended[place] = PartitionEnd(offset, mark)
                arrived.add(place)
            else:
                self._take_error(message, error)
        for place in arrived:
            self._doubts.settled(place)
            stalls.arrived(self._in_kafka(place), self._waited_s)
            if place not in ended:
                stalls.expect(self._in_kafka(place), self._waited_s)
        if self._broken is not None and not records:
            raise self._broken
        marks = {place: self._high_watermark(place, positions[place]) for place in brought if tells_marks}
        return PolledBatch(records, ended, {place: mark for place, mark in marks.items() if mark is not None})

    def _high_watermark(self, place: TopicPartition, offset: int) -> int | None:
        """The high watermark of a partition that is read up to an offset; None if it is not known.

        The client keeps the one of the last reply to a fetch: also of a reply that it does not use otherwise, such as
        that of a broker which leads the partition no longer. A reply with an error says -1.
        """
        marks = self._consumer.current.get_watermark_offsets(KafkaPosition(*self._in_kafka(place)), cached=True)
        return marks[1] if marks[1] >= offset else None

    def _reassign(self) -> None:
        """Assign the positions again; of each partition the next record or the end is expected."""
        self._consumer.assign([KafkaPosition(*self._in_kafka(place), at) for place, at in self._positions.items()])
        self._assigned_at_s = self._waited_s
        self._lacks_end = False
        for place in self._positions:
            self._consumer.stalls.expect(self._in_kafka(place), self._waited_s)

    def _ask_for_ends_again(self) -> None:
        is_due = self._waited_s - self._assigned_at_s >= _IDLE_REASSIGN_S and not self._consumer.is_suspected
        if is_due and not all(self._consumer.stalls.is_expected(self._in_kafka(place)) for place in self._positions):
            self._reassign()

    def _count_waiting(self, timeout_s: float) -> None:
        now_s = time.monotonic()
        self._waited_s += min(now_s - self._polled_at_s, timeout_s + _MAX_GAP_COUNTED_S)
        self._polled_at_s = now_s

    def _in_kafka(self, place: TopicPartition) -> tuple[str, int]:
        return self._cluster.topic(place.topic), place.partition

    def _take_error(self, message: Message, error: KafkaError) -> None:
        place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
        broken = reading_error(error, place, self._access)
        if is_out_of_range(error) and not is_truncation(error) and self._may_be_outdated(message, error):
            self._logger.warning("a broker does not have an offset, asking again", place=place, error=in_words(error))
            return
        if broken is None and not is_denied(error):
            self._logger.warning("Kafka read error", place=place, error=in_words(error))
        elif broken is not None and self._broken is None:
            self._broken = broken
            self._consumer.halt()

    def _may_be_outdated(self, message: Message, error: KafkaError) -> bool:
        """Whether a broker that lacks an offset may be one that leads the partition no longer, so that another has it.

        Not if the records before that offset were deleted, and not for ever. No error of the query leaves: the records
        that came with this message would be lost. If it lasts, the next query or the next message tells it.
        """
        place = TopicPartition(self._names[message.topic()], message.partition() or 0)
        if not self._doubts.may_go_on(place, error, self._waited_s):
            return False
        # An answer: the client does not stall.
        self._consumer.stalls.arrived(self._in_kafka(place), self._waited_s)
        try:
            starts = self._queries.start_offsets(place.topic, only_answering=True)
        except (LogUnavailableError, UserError, KafkaException):
            return True
        return self._positions[place] >= starts.get(place, 0)


def _new_consumer(cluster: ClusterConfig, kafka: KafkaConfig, listener: LogListener) -> Consumer:
    own: dict[str, object] = {
        # librdkafka requires a group; nothing is ever committed to it, and no two readers share one.
        "group.id": f"controlplane-{cluster.name}-{uuid.uuid4()}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
        "fetch.min.bytes": 1,
        "fetch.wait.max.ms": _FETCH_WAIT_MS,
        "fetch.error.backoff.ms": 100,
        # After a full queue was emptied, the next fetch must not wait for the default of a whole second.
        "fetch.queue.backoff.ms": 10,
        "queued.min.messages": 100_000,
        "queued.max.messages.kbytes": 65_536,
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        "topic.metadata.refresh.interval.ms": LEADERS_ASKED_EVERY_MS,
        # There is no group membership to lose, however seldom the caller polls.
        "max.poll.interval.ms": 86_400_000,
    }
    return new_client(Consumer, client_settings(cluster, kafka, listener, _ROLE, own))

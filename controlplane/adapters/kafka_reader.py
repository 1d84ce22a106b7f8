"""Reading Kafka from positions that the caller keeps: no consumer group, read_committed, nothing skipped."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import structlog
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters.kafka_client import (
    ClientEar,
    client_settings,
    close_aside,
    new_client,
    tell_replaced,
)
from controlplane.adapters.kafka_client_watch import ClientWatch
from controlplane.adapters.kafka_errors import (
    Access,
    error_of,
    in_words,
    is_denied,
    is_missing,
    reading_error,
)
from controlplane.adapters.kafka_inquiry import Inquiry
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    InvariantViolationError,
    LogUnavailableError,
    PrerequisiteError,
)
from controlplane.ports import PolledBatch, RawRecord

_Answer = TypeVar("_Answer")

_NOTHING = PolledBatch((), frozenset())
_END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_MOST_PER_CONSUME = 1_000_000
_RETRY_PAUSE_S = 0.05
_LEADER_WAIT_S = 1.0
"""An election takes less as a rule; a partition that has no leader after it is left out where it may be."""
_FETCH_WAIT_MS = 100
"""How long the broker keeps an idle fetch open. Records come at once whatever it is (measured: 2 ms after a commit);
the end of a partition is noticed after it, and an idle reader asks that often."""
_QUIET_S = 10.0
"""After this long the end of a partition is asked for again: nothing new there, and a client that hears nothing any
more, are the same to see."""
_LONGEST_ABSENCE_S = 1.0
"""Of the time between two polls no more than this is waiting: the caller may have been elsewhere, or stopped."""


class KafkaLogReader:
    """Implements :class:`controlplane.ports.LogReader`. One thread only.

    A partition that does not exist is not an error of :meth:`assign` or :meth:`poll`, it is just never heard of:
    ask :meth:`partition_count` first.

    Args:
        cluster: prefix of the topics.
        kafka: where the log is.
        request_timeout_ms: how long a question about topics or offsets may take in all.
    """

    def __init__(self, cluster: ClusterConfig, kafka: KafkaConfig, *, request_timeout_ms: int = 5_000) -> None:
        """Prepare; connections are made when they are needed."""
        self._cluster = cluster
        self._kafka = kafka
        self._request_timeout_s = request_timeout_ms / 1_000
        self._ear = ClientEar("reader")
        self._access = Access(kafka.principal, "read")
        self._logger = structlog.get_logger().bind(cluster=cluster.name)
        self._consumer = self._new_consumer()
        self._asking: Consumer | None = None
        self._names: dict[str | None, str] = {}
        self._broken: ControlPlaneError | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._watch: ClientWatch[TopicPartition] = ClientWatch()
        self._inquiry: Inquiry | None = None
        self._waited_s = 0.0
        self._polled_at_s = time.monotonic()
        self._fetches_since_s = 0.0

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.LogReader.partition_count`.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        return len(self._ask(topic, lambda asking, remaining_s: _partitions(asking, self._name(topic), remaining_s)))

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.offsets_at_time`."""
        # The end is asked for first: what is appended in between belongs after it and must not be left out.
        ends = self._offsets(topic, OFFSET_END, only_answering=only_answering)
        found = self._offsets(topic, time_ms, only_answering=only_answering)
        # A partition can get a leader, or lose it, between the two.
        answered = [place for place in found if place in ends or not only_answering]
        return {place: found[place] if found[place] >= 0 else ends[place] for place in answered}

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.start_offsets`."""
        return self._offsets(topic, OFFSET_BEGINNING, only_answering=only_answering)

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See :meth:`controlplane.ports.LogReader.end_offsets`; Kafka answers the last stable offset."""
        return self._offsets(topic, OFFSET_END, only_answering=only_answering)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See :meth:`controlplane.ports.LogReader.assign`.

        Raises:
            InvariantViolationError: an offset is negative: librdkafka would take it for "the end" or the like.
        """
        if any(offset < 0 for offset in positions.values()):
            raise InvariantViolationError(f"offsets to read from have to be 0 or more, not {dict(positions)}")
        self._broken = None
        self._names = {self._name(place.topic): place.topic for place in positions}
        self._positions = dict(positions)
        self._watch.keep_to(positions)
        self._fetch()

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See :meth:`controlplane.ports.LogReader.poll`.

        The first record is waited for, the others are taken as they lie there: ``consume`` alone would wait for the
        whole batch or the whole timeout.

        Raises:
            LogContinuityError: a partition cannot be read on; raised again until the next :meth:`assign`.
            ConfigurationError: this user may not read a topic.
        """
        if self._broken is not None:
            raise self._broken
        first = self._consumer.poll(timeout_ms / 1_000)
        self._listen()
        self._count_waiting(timeout_ms / 1_000)
        messages = [] if first is None else [first]
        if messages and max_records > 1:
            messages += self._consumer.consume(min(max_records - 1, _MOST_PER_CONSUME), 0)
        batch = self._sorted_out(messages) if messages else _NOTHING
        if len(messages) < max_records and self._broken is None:
            self._look_after_fetching()
        return batch

    def close(self) -> None:
        """Give everything back; further calls are errors."""
        self._consumer.close()
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def _sorted_out(self, messages: list[Message]) -> PolledBatch:
        """Records, ends of partitions and errors apart; what stands before an error is handed over first."""
        names, positions, watch = self._names, self._positions, self._watch
        records: list[RawRecord] = []
        ended: set[TopicPartition] = set()
        heard: set[TopicPartition] = set()
        for message in messages:
            error = message.error()
            if error is None:
                record = RawRecord(
                    names[message.topic()],
                    message.partition(),  # type: ignore[arg-type] # a record without error has a place
                    message.offset(),  # type: ignore[arg-type] # as above
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                )
                records.append(record)
                place = TopicPartition(record.topic, record.partition)
                positions[place] = record.offset + 1
                heard.add(place)
                ended.discard(place)
                continue
            if error.code() == _END_OF_PARTITION:
                place = TopicPartition(names[message.topic()], message.partition() or 0)
                ended.add(place)
                heard.add(place)
            else:
                self._take_error(message, error)
        for place in heard:
            watch.settled(place, self._waited_s)
            if place not in ended:
                watch.owes(place, self._waited_s)
        if self._broken is not None and not records:
            raise self._broken
        return PolledBatch(records, frozenset(ended))

    def _fetch(self) -> None:
        """Read on from where everything was read to; of each partition its next record or its end has to come."""
        self._consumer.assign(
            [
                KafkaPosition(self._name(place.topic), place.partition, offset)
                for place, offset in self._positions.items()
            ]
        )
        self._fetches_since_s = self._waited_s
        for place in self._positions:
            self._watch.owes(place, self._waited_s)

    def _count_waiting(self, timeout_s: float) -> None:
        """Count for how long records were waited for: only of that can a client be late."""
        now_s = time.monotonic()
        self._waited_s += min(now_s - self._polled_at_s, timeout_s + _LONGEST_ABSENCE_S)
        self._polled_at_s = now_s

    def _look_after_fetching(self) -> None:
        """All that had come was taken: let another client ask for what is still owed, and take this one's place."""
        if self._inquiry is not None:
            if self._inquiry.is_over:
                answered, self._inquiry = self._inquiry.leader_answered, None
                if self._watch.is_lost(self._waited_s, another_was_answered=answered):
                    self._replace()
            return
        overdue = self._watch.overdue(self._waited_s)
        if overdue:
            self._inquiry = Inquiry(self._new_consumer, self._in_kafka(overdue))
        elif self._waited_s - self._fetches_since_s >= _QUIET_S and any(map(self._watch.is_settled, self._positions)):
            self._fetch()

    def _replace(self) -> None:
        """Read on through another client."""
        other = self._another_consumer()
        if other is None:
            return
        lost, self._consumer = self._consumer, other
        suspects = self._watch.replaced(self._waited_s)
        self._fetch()
        close_aside(lost)
        tell_replaced(self._cluster.name, "reader", self._in_kafka(suspects))

    def _in_kafka(self, places: Iterable[TopicPartition]) -> set[tuple[str, int]]:
        return {(self._name(place.topic), place.partition) for place in places}

    def _take_error(self, message: Message, error: KafkaError) -> None:
        place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
        broken = reading_error(error, place, self._access)
        if broken is None and not is_denied(error):
            self._logger.warning("Kafka read error", place=place, error=in_words(error))
        elif broken is not None and self._broken is None:
            self._broken = broken

    def _offsets(self, topic: str, time_ms_or_end: int, *, only_answering: bool) -> dict[TopicPartition, int]:
        """One request for all partitions of a topic; -1 and -2 stand for end and start, as in Kafka's protocol."""
        name = self._name(topic)
        waits_until = time.monotonic() + _LEADER_WAIT_S

        def ask(asking: Consumer, remaining_s: float) -> dict[TopicPartition, int]:
            has_leader = _partitions(asking, name, remaining_s)
            if only_answering and not all(has_leader.values()) and time.monotonic() < waits_until:
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            numbers = [number for number in sorted(has_leader) if has_leader[number] or not only_answering]
            if not numbers:
                return {}
            wanted = [KafkaPosition(name, number, time_ms_or_end) for number in numbers]
            found = asking.offsets_for_times(wanted, timeout=remaining_s)
            for position in found:
                if position.error is not None:
                    raise KafkaException(position.error)
            return {TopicPartition(topic, position.partition): position.offset for position in found}

        return self._ask(topic, ask)

    def _ask(self, topic: str, question: Callable[[Consumer, float], _Answer]) -> _Answer:
        """Ask until there is an answer or the time is over; leaders may be unknown for a moment after a start."""
        asking = self._client_to_ask()
        deadline = time.monotonic() + self._request_timeout_s
        while True:
            remaining_s = deadline - time.monotonic()
            try:
                return question(asking, max(remaining_s, _RETRY_PAUSE_S))
            except KafkaException as exception:
                what = f"topic {self._name(topic)}"
                translated = self._ear.request_error(error_of(exception), what, self._access)
                # A topic whose partitions were counted a moment ago can still be unknown to another part of the client.
                may_pass = isinstance(translated, LogUnavailableError | PrerequisiteError)
                if not may_pass or remaining_s <= _RETRY_PAUSE_S:
                    if isinstance(translated, LogUnavailableError):
                        self._give_up(asking)
                    raise translated from exception
            finally:
                self._listen()
            time.sleep(_RETRY_PAUSE_S)

    def _listen(self) -> None:
        """Take up what the clients have to say of their brokers: in one that has no turn it would gather without bound.

        Not where a record could come, which :meth:`poll` owes the caller; one that cannot be read on owes none.
        """
        if not self._names or self._broken is not None:
            self._consumer.poll(0)
        if self._asking is not None:
            self._asking.poll(0)

    def _client_to_ask(self) -> Consumer:
        """Behind an open fetch questions would queue up, so they get a client of their own once something is assigned.

        Before that they are asked by the client that will read: a consumer whose first call is ``assign`` often takes a
        second to fetch, one that has asked before does not (measured: 10 of 24, and 0 of 24).
        """
        if not self._names:
            return self._consumer
        if self._asking is None:
            self._asking = self._new_consumer()
        return self._asking

    def _give_up(self, asking: Consumer) -> None:
        """The next question goes to a new client: this one may never be answered again, whoever answers by then."""
        if asking is self._asking:
            self._asking = None
        else:
            other = self._another_consumer()
            if other is None:
                return
            self._consumer = other
        close_aside(asking)

    def _name(self, topic: str) -> str:
        return self._cluster.topic(topic)

    def _another_consumer(self) -> Consumer | None:
        """One to stand in for a client that may yet be answered, and is kept where there is no other to be had."""
        try:
            return self._new_consumer()
        except (ConfigurationError, KafkaException) as error:
            self._logger.warning("no other Kafka client to try", error=str(error))
            return None

    def _new_consumer(self) -> Consumer:
        own: dict[str, object] = {
            # librdkafka wants a group; nothing is ever committed to it, and no two readers share one.
            "group.id": f"controlplane-{self._cluster.name}-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
            "fetch.min.bytes": 1,
            "fetch.wait.max.ms": _FETCH_WAIT_MS,
            "fetch.error.backoff.ms": 100,
            # After a full queue was read empty the next fetch must not wait the default's whole second.
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 100_000,
            "queued.max.messages.kbytes": 65_536,
            "socket.timeout.ms": 10_000,
            # A partition leader that was replaced and does not know it answers fetches with an end that is none. The
            # default's five minutes would be how long a node beside it believes that (decision 0013).
            "topic.metadata.refresh.interval.ms": 10_000,
            # There is no group to be thrown out of, however seldom the caller polls.
            "max.poll.interval.ms": 86_400_000,
        }
        return new_client(Consumer, client_settings(self._cluster, self._kafka, self._ear, "reader", own))


def _partitions(asking: Consumer, name: str, remaining_s: float) -> dict[int, bool]:
    """The partitions of a topic, and whether each has a leader."""
    found = asking.list_topics(name, timeout=remaining_s).topics[name]
    if found.error is not None:
        if is_missing(found.error):
            raise PrerequisiteError(
                f"there is no topic {name}: create the cluster's topics with 'controlplane topics apply'"
            )
        raise KafkaException(found.error)
    return {number: partition.leader >= 0 for number, partition in found.partitions.items()}

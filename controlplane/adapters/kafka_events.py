"""Single records to Kafka: heartbeats, ticks, reports, intents, dead letters."""

import threading
import time
from collections.abc import Callable

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_client import (
    ClientEar,
    client_settings,
    close_aside,
    gets_an_answer,
    new_client,
    tell_replaced,
)
from controlplane.adapters.kafka_client_watch import LONGEST_PATIENCE_S, ClientWatch
from controlplane.adapters.kafka_errors import (
    Access,
    denial_error,
    error_of,
    in_words,
    is_denied,
    is_missing,
    is_purged,
    refusal_error,
)
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, LogUnavailableError, PrerequisiteError
from controlplane.ports import Delivery, OutgoingRecord

_CLOSING_FLUSH_MS = 1_000
_FLUSH_STEP_S = 0.05
_ANSWER_WAIT_S = 1.0
"""How long a client that may replace another one is waited for, in the time of whoever polls."""
_TIMED_OUT = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_ANY_PARTITION = -1
"""Of a record that was given up before its partition was chosen: the client knew none."""

_logger = structlog.get_logger()


class KafkaEventWriter:
    """Implements :class:`controlplane.ports.EventWriter`. Thread-safe; callbacks run in the thread that polls.

    Args:
        cluster: prefix of the topics.
        kafka: where the log is.
        message_timeout_ms: after this long without an acknowledgement a record is given up, and its delivery says so.
            One that was sent already may still arrive later.
        request_timeout_ms: how long a question about topics may take.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        kafka: KafkaConfig,
        message_timeout_ms: int = 2_500,
        *,
        request_timeout_ms: int = 5_000,
    ) -> None:
        """Prepare; connections are made when they are needed."""
        self._cluster = cluster
        self._kafka = kafka
        self._request_timeout_s = request_timeout_ms / 1_000
        self._ear = ClientEar("events")
        self._access = Access(kafka.principal, "write")
        self._own_settings: dict[str, object] = {
            "message.timeout.ms": message_timeout_ms,
            "request.timeout.ms": message_timeout_ms,
            "socket.timeout.ms": 10_000,
            "message.max.bytes": 1_048_588,
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 5,
            "partitioner": "murmur2_random",
            "compression.type": "none",
            # A heartbeat or a tick travels at once: silence is counted from its append.
            "linger.ms": 0,
            "queue.buffering.max.messages": 100_000,
        }
        self._lock = threading.Lock()
        self._retired: list[Producer] = []
        self._ended_by: KafkaError | None = None
        self._watch: ClientWatch[tuple[str, int]] = ClientWatch()
        self._given_up_at_s: dict[tuple[str, int], float] = {}
        self._forgets_after_s = LONGEST_PATIENCE_S + message_timeout_ms / 1_000
        self._has_given_up = False
        self._producer = self._new_producer()

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """
        sent_at_s = time.monotonic()

        def deliver(error: KafkaError | None, message: Message) -> None:
            self._note(record.topic, message.partition(), error, sent_at_s)
            if on_delivery is not None:
                on_delivery(self._delivery(record.topic, error, message))

        producer = self._producer
        try:
            with self._lock:
                # Not into one that was replaced meanwhile: nobody would tell what became of the record.
                producer = self._producer
                self._produce(producer, record, deliver)
        except KafkaException as exception:
            error = error_of(exception)
            if error.fatal():
                self._replace_broken(producer, error)
                self._produce(self._producer, record, deliver)
                return
            place = f"{self._cluster.topic(record.topic)}, key {record.key!r}"
            raise (
                refusal_error(error, place, self._access) or self._ear.request_error(error, place, self._access)
            ) from exception

    def poll(self, timeout_ms: int) -> None:
        """See :meth:`controlplane.ports.EventWriter.poll`."""
        self._serve_retired()
        self._serve(self._producer, timeout_ms / 1_000)

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        with self._lock:
            return len(self._producer) > 0 or any(map(len, self._retired))

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`."""
        self._serve_retired()
        deadline = time.monotonic() + timeout_ms / 1_000
        # Not by the client's own flush: it runs on with callbacks while the exception of a fatal error is pending.
        while len(self._producer) and (remaining_s := deadline - time.monotonic()) > 0:
            self._serve(self._producer, min(remaining_s, _FLUSH_STEP_S))
            self._serve_retired()
        return len(self._producer)

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        name = self._cluster.topic(topic)
        try:
            found = self._producer.list_topics(name, timeout=self._request_timeout_s).topics[name]
        except KafkaException as exception:
            translated = self._ear.request_error(error_of(exception), f"topic {name}", self._access)
            producer = self._producer
            if isinstance(translated, LogUnavailableError) and not len(producer):
                # A producer that may never be answered: with nothing to send, nothing else would show it.
                self._replace(producer, self._new_producer(), error_of(exception))
            raise translated from exception
        if found.error is not None:
            if is_missing(found.error):
                raise PrerequisiteError(
                    f"there is no topic {name}: create the cluster's topics with 'controlplane topics apply'"
                )
            raise self._ear.request_error(found.error, f"topic {name}", self._access)
        return len(found.partitions)

    def close(self) -> None:
        """See :meth:`controlplane.ports.EventWriter.close`; what is not delivered by then is given up."""
        self.flush(_CLOSING_FLUSH_MS)
        self._producer.purge()
        self.flush(_CLOSING_FLUSH_MS)

    def _produce(
        self, producer: Producer, record: OutgoingRecord, deliver: Callable[[KafkaError | None, Message], None]
    ) -> None:
        name = self._cluster.topic(record.topic)
        partition = -1 if record.partition is None else record.partition
        try:
            producer.produce(name, record.value, record.key, partition, on_delivery=deliver)
        except BufferError as exception:
            trouble = f" (last trouble: {self._ear.last_error})" if self._ear.last_error else ""
            raise LogUnavailableError(
                f"{len(producer)} records wait for Kafka, the most that may{trouble}: try again when it is back"
            ) from exception

    def _note(self, topic: str, partition: int | None, error: KafkaError | None, sent_at_s: float) -> None:
        """Of records that are given up one after the other the acknowledgement of the first is what is owed."""
        place = topic, _ANY_PARTITION if partition is None else partition
        with self._lock:
            if error is None:
                now_s = time.monotonic()
                self._watch.settled(place, now_s)
                self._watch.settled((topic, _ANY_PARTITION), now_s)
            elif error.code() == _TIMED_OUT:
                self._watch.owes(place, sent_at_s)
                self._given_up_at_s[place] = time.monotonic()
                self._has_given_up = True

    def _look_after_sending(self, producer: Producer) -> None:
        """Try another producer where nothing that is sent through this one is acknowledged any more.

        Only when one more record was given up: where nothing is sent nobody knows whether it would arrive.
        """
        overdue = self._overdue()
        if not overdue:
            return
        places = [(self._cluster.topic(topic), partition) for topic, partition in overdue]
        try:
            another_was_answered = self._another_is_answered(places)
            with self._lock:
                is_lost = self._watch.is_lost(another_was_answered=another_was_answered)
            if is_lost and self._replace(producer, self._new_producer(), KafkaError(_TIMED_OUT)):
                with self._lock:
                    self._watch.replaced(time.monotonic())
                tell_replaced(self._cluster.name, "events", places)
        except (ConfigurationError, KafkaException) as error:
            _logger.warning("no other Kafka client to try", cluster=self._cluster.name, error=str(error))

    def _overdue(self) -> list[tuple[str, int]]:
        """The places to which something was sent lately, and nothing has arrived for too long."""
        now_s = time.monotonic()
        with self._lock:
            if not self._has_given_up:
                return []
            self._has_given_up = False
            lately_s = now_s - self._forgets_after_s
            self._given_up_at_s = {place: at_s for place, at_s in self._given_up_at_s.items() if at_s >= lately_s}
            self._watch.keep_to(self._given_up_at_s.keys())
            return self._watch.overdue(now_s)

    def _another_is_answered(self, places: list[tuple[str, int]]) -> bool:
        """Ask the leaders by a client of its own: a producer can only ask who they are."""
        own = {"group.id": f"controlplane-{self._cluster.name}-asking"}
        asking = new_client(Consumer, client_settings(self._cluster, self._kafka, self._ear, "events", own))
        try:
            return gets_an_answer(asking, places, _ANSWER_WAIT_S)
        finally:
            close_aside(asking)

    def _replace_broken(self, broken: Producer, error: KafkaError) -> None:
        """Go on with a new producer: an idempotent one that lost step with the broker is finished for good."""
        if self._replace(broken, self._new_producer(), error):
            with self._lock:
                self._watch = ClientWatch()
            _logger.warning("Kafka producer replaced", cluster=self._cluster.name, error=in_words(error))

    def _replace(self, former: Producer, other: Producer, error: KafkaError) -> bool:
        """Go on with the other one, unless somebody else has done so meanwhile.

        What the former still held is given up, and the next poll says so to whoever sent it.
        """
        with self._lock:
            if self._producer is not former:
                return False
            self._ended_by = error
            former.purge()
            self._retired.append(former)
            self._producer = other
            return True

    def _serve_retired(self) -> None:
        """Run the last callbacks of producers that were replaced."""
        with self._lock:
            retired, self._retired = self._retired, []
        for producer in retired:
            deadline = time.monotonic() + _CLOSING_FLUSH_MS / 1_000
            while len(producer) and time.monotonic() < deadline:
                self._serve(producer, _FLUSH_STEP_S)

    def _serve(self, producer: Producer, timeout_s: float) -> None:
        """Run callbacks; a fatal error is raised here as well as by the next record."""
        try:
            producer.poll(timeout_s)
        except KafkaException as exception:
            error = error_of(exception)
            if not error.fatal():
                raise
            self._replace_broken(producer, error)
            return
        if producer is self._producer:
            self._look_after_sending(producer)

    def _new_producer(self) -> Producer:
        settings = client_settings(self._cluster, self._kafka, self._ear, "events", self._own_settings)
        return new_client(Producer, settings)

    def _delivery(self, topic: str, error: KafkaError | None, message: Message) -> Delivery:
        """A delivery report as a value; a record that was given up has no place."""
        partition = message.partition()
        offset = message.offset()
        if error is None and partition is not None and offset is not None:
            return Delivery(topic, partition, offset, message.timestamp()[1], None)
        if error is not None and is_purged(error) and self._ended_by is not None:
            error = self._ended_by
        denied = error is not None and is_denied(error)
        reason = in_words(error) if error else "no place"
        if error is not None and denied:
            reason = str(denial_error(error, f"topic {self._cluster.topic(topic)}", self._access))
        return Delivery(topic, -1 if partition is None else partition, -1, -1, reason, denied)

"""Single records to Kafka: heartbeats, ticks, reports, intents, dead letters."""

import threading
import time
from collections.abc import Callable, Iterable

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_client import (
    ClientEar,
    client_settings,
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
from controlplane.adapters.kafka_inquiry import ANY_PARTITION, Inquiry
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, LogUnavailableError, PrerequisiteError
from controlplane.ports import Delivery, OutgoingRecord

_CLOSING_FLUSH_MS = 1_000
_FLUSH_STEP_S = 0.05
_TIMED_OUT = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - librdkafka's own codes begin with an underscore

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
        # Of librdkafka's own counts none is of records: they hold its log lines and errors, too.
        self._undelivered = 0
        self._retired: list[Producer] = []
        self._ended_by: KafkaError | None = None
        self._watch: ClientWatch[tuple[str, int]] = ClientWatch()
        self._given_up_at_s: dict[tuple[str, int], float] = {}
        self._forgets_after_s = LONGEST_PATIENCE_S + message_timeout_ms / 1_000
        self._has_given_up = False
        self._inquiry: Inquiry | None = None
        self._producer = self._new_producer()

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """
        sent_at_s = time.monotonic()

        def deliver(error: KafkaError | None, message: Message) -> None:
            try:
                self._note(record.topic, message.partition(), error, sent_at_s)
                if on_delivery is not None:
                    on_delivery(self._delivery(record.topic, error, message))
            finally:
                with self._lock:
                    self._undelivered -= 1

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
                with self._lock:
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
        self._look_after_sending()

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        with self._lock:
            return self._undelivered > 0

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`."""
        self._drain(timeout_ms)
        self._look_after_sending()
        with self._lock:
            return self._undelivered

    def _drain(self, timeout_ms: int) -> None:
        """Run callbacks until each record has had its own, or the time is over."""
        self._serve_retired()
        deadline = time.monotonic() + timeout_ms / 1_000
        # Not by the client's own flush: it runs on with callbacks while the exception of a fatal error is pending.
        while self.awaits_delivery and (remaining_s := deadline - time.monotonic()) > 0:
            self._serve(self._producer, min(remaining_s, _FLUSH_STEP_S))
            self._serve_retired()

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        name = self._cluster.topic(topic)
        producer = self._producer
        try:
            found = producer.list_topics(name, timeout=self._request_timeout_s).topics[name]
        except KafkaException as exception:
            error = error_of(exception)
            translated = self._ear.request_error(error, f"topic {name}", self._access)
            if isinstance(translated, LogUnavailableError):
                # A producer that may never be answered: with nothing to send, nothing else would show it.
                self._try_to_replace(producer, error, only_idle=True)
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
        self._drain(_CLOSING_FLUSH_MS)
        self._producer.purge()
        self._drain(_CLOSING_FLUSH_MS)

    def _produce(
        self, producer: Producer, record: OutgoingRecord, deliver: Callable[[KafkaError | None, Message], None]
    ) -> None:
        name = self._cluster.topic(record.topic)
        partition = -1 if record.partition is None else record.partition
        try:
            producer.produce(name, record.value, record.key, partition, on_delivery=deliver)
            self._undelivered += 1
        except BufferError as exception:
            trouble = f" (last trouble: {self._ear.last_error})" if self._ear.last_error else ""
            raise LogUnavailableError(
                f"{len(producer)} records wait for Kafka, the most that may{trouble}: try again when it is back"
            ) from exception

    def _note(self, topic: str, partition: int | None, error: KafkaError | None, sent_at_s: float) -> None:
        """Of records that are given up one after the other the acknowledgement of the first is what is owed."""
        place = topic, ANY_PARTITION if partition is None else partition
        with self._lock:
            if error is None:
                now_s = time.monotonic()
                self._watch.settled(place, now_s)
                self._watch.settled((topic, ANY_PARTITION), now_s)
            elif error.code() == _TIMED_OUT:
                self._watch.owes(place, sent_at_s)
                self._given_up_at_s[place] = time.monotonic()
                self._has_given_up = True

    def _look_after_sending(self) -> None:
        """Let another client ask where nothing that is sent is acknowledged any more, and let another one send.

        Only when one more record was given up: where nothing is sent nobody knows whether it would arrive.
        """
        now_s = time.monotonic()
        with self._lock:
            producer, inquiry = self._producer, self._inquiry
            if inquiry is None:
                overdue = self._overdue(now_s)
                if overdue:
                    self._inquiry = Inquiry(self._new_asking, self._in_kafka(overdue), producer)
                return
            if not inquiry.is_over:
                return
            self._inquiry = None
            is_lost = self._watch.is_lost(
                now_s, another_was_answered=inquiry.leader_answered, this_was_answered=inquiry.doubted_answered
            )
        if is_lost and self._try_to_replace(producer, KafkaError(_TIMED_OUT)):
            with self._lock:
                suspects = self._watch.replaced(now_s)
            tell_replaced(self._cluster.name, "events", self._in_kafka(suspects))

    def _overdue(self, now_s: float) -> list[tuple[str, int]]:
        """The places to which something was sent lately, and nothing has arrived for too long."""
        if not self._has_given_up:
            return []
        self._has_given_up = False
        lately_s = now_s - self._forgets_after_s
        self._given_up_at_s = {place: at_s for place, at_s in self._given_up_at_s.items() if at_s >= lately_s}
        self._watch.keep_to(self._given_up_at_s.keys())
        return self._watch.overdue(now_s)

    def _in_kafka(self, places: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        return {(self._cluster.topic(topic), partition) for topic, partition in places}

    def _replace_broken(self, broken: Producer, error: KafkaError) -> None:
        """Go on with a new producer: an idempotent one that lost step with the broker is finished for good."""
        if self._replace(broken, error):
            with self._lock:
                self._watch = ClientWatch()
            _logger.warning("Kafka producer replaced", cluster=self._cluster.name, error=in_words(error))

    def _try_to_replace(self, former: Producer, error: KafkaError, *, only_idle: bool = False) -> bool:
        """Replace a producer that may yet be answered: without another one it is kept."""
        try:
            return self._replace(former, error, only_idle=only_idle)
        except (ConfigurationError, KafkaException) as trouble:
            _logger.warning("no other Kafka client to try", cluster=self._cluster.name, error=str(trouble))
            return False

    def _replace(self, former: Producer, error: KafkaError, *, only_idle: bool = False) -> bool:
        """Go on with another one, unless somebody else has done so meanwhile.

        What the former still held is given up, and the next poll says so to whoever sent it.
        """
        with self._lock:
            if self._producer is not former or (only_idle and self._undelivered):
                return False
            self._producer = self._new_producer()
            self._inquiry = None
            self._ended_by = error
            former.purge()
            self._retired.append(former)
            return True

    def _serve_retired(self) -> None:
        """Run the last callbacks of producers that were replaced, and let those go that have none left."""
        if not self._retired:
            return
        self._run_callbacks(self._retired)
        with self._lock:
            finished = [producer for producer in self._retired if not len(producer)]
            self._retired = [producer for producer in self._retired if producer not in finished]
            if not self._retired:
                self._ended_by = None
        if finished:
            # The last reference joins librdkafka's threads; closing would not wait for another caller inside.
            threading.Thread(target=finished.clear, name="kafka-close", daemon=True).start()

    def _run_callbacks(self, producers: list[Producer]) -> None:
        for producer in producers:
            if len(producer):
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

    def _new_asking(self) -> Consumer:
        """A producer can ask who leads, but not the leaders themselves."""
        own = {"group.id": f"controlplane-{self._cluster.name}-asking"}
        return new_client(Consumer, client_settings(self._cluster, self._kafka, self._ear, "events", own))

    def _new_producer(self) -> Producer:
        settings = client_settings(self._cluster, self._kafka, self._ear, "events", self._own_settings)
        return new_client(Producer, settings)

    def _delivery(self, topic: str, error: KafkaError | None, message: Message) -> Delivery:
        """A delivery report as a value; a record that was given up has no place."""
        partition = message.partition()
        offset = message.offset()
        if error is None and partition is not None and offset is not None:
            return Delivery(topic, partition, offset, message.timestamp()[1], None)
        ended_by = self._ended_by
        if error is not None and is_purged(error) and ended_by is not None:
            error = ended_by
        denied = error is not None and is_denied(error)
        reason = in_words(error) if error else "no place"
        if error is not None and denied:
            reason = str(denial_error(error, f"topic {self._cluster.topic(topic)}", self._access))
        return Delivery(topic, -1 if partition is None else partition, -1, -1, reason, denied)

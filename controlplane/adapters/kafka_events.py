"""Single records to Kafka: heartbeats, ticks, reports, intents, dead letters."""

import threading
import time
from collections.abc import Callable

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_client import ClientEar, client_settings, new_client
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
from controlplane.errors import LogUnavailableError, PrerequisiteError
from controlplane.ports import Delivery, OutgoingRecord

_CLOSING_FLUSH_MS = 1_000
_FLUSH_STEP_S = 0.05

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
        self._producer = self._new_producer()

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """

        def deliver(error: KafkaError | None, message: Message) -> None:
            if on_delivery is not None:
                on_delivery(self._delivery(record.topic, error, message))

        producer = self._producer
        try:
            self._produce(producer, record, deliver)
        except KafkaException as exception:
            error = error_of(exception)
            if error.fatal():
                self._replace(producer, error)
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
            raise self._ear.request_error(error_of(exception), f"topic {name}", self._access) from exception
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

    def _replace(self, broken: Producer, error: KafkaError) -> None:
        """Go on with a new producer: an idempotent one that lost step with the broker is finished for good.

        What it still held is given up, and the next poll says so to whoever sent it.
        """
        with self._lock:
            if self._producer is broken:
                self._ended_by = error
                _logger.warning("Kafka producer replaced", cluster=self._cluster.name, error=in_words(error))
                broken.purge()
                self._retired.append(broken)
                self._producer = self._new_producer()

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
            self._replace(producer, error)

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

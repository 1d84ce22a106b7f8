"""Appends single records to Kafka: implements the port :class:`controlplane.ports.EventWriter`.

Heartbeats, ticks, load reports, intents and dead letters are written this way. The guarantees of the port are
implemented as follows:

- Idempotent and in order per key, within one producer: ``enable.idempotence=true``. A record that was given up with
  its producer may be appended after later ones of the same key.
- Acknowledged by all in-sync replicas: ``acks=all``.
- Each accepted record is reported once, with its place or the reason why it was given up.
  :class:`ReplaceableProducer` reports also the records of producers that it replaced.
"""

from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from controlplane.adapters.kafka_client import PRODUCER_SETTINGS, SOCKET_TIMEOUT_MS, client_settings, new_client
from controlplane.adapters.kafka_errors import Access, denial_error, error_of, in_words, is_denied, refusal_error
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_probe import ANY_PARTITION
from controlplane.adapters.kafka_queries import partition_leaders
from controlplane.adapters.kafka_replaceable_producer import ReplaceableProducer
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord

_ROLE = "events"


class KafkaEventWriter:
    """Implements :class:`controlplane.ports.EventWriter`. Thread-safe; callbacks run in the thread that polls.

    Args:
        cluster: determines the prefix of the topics.
        kafka: the servers, and the user's settings.
        message_timeout_ms: time without an acknowledgement after which a record is reported as given up. A record that
            was transmitted before may still be appended later.
        request_timeout_ms: time limit of a query about topics.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        kafka: KafkaConfig,
        message_timeout_ms: int = 2_500,
        *,
        request_timeout_ms: int = 5_000,
    ) -> None:
        """Create the producer; connections are opened when they are needed."""
        self._cluster = cluster
        self._request_timeout_s = request_timeout_ms / 1_000
        self._access = Access(kafka.principal, "write")
        self._producer = ReplaceableProducer(
            cluster.name,
            _ROLE,
            partial(_new_producer, cluster, kafka, message_timeout_ms),
            partial(_new_probing_consumer, cluster, kafka),
            message_timeout_s=message_timeout_ms / 1_000,
        )

    def send(self, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None) -> None:
        """See :meth:`controlplane.ports.EventWriter.send`.

        Raises:
            ConfigurationError: the record is too large.
        """

        def report(error: KafkaError | None, message: Message) -> None:
            if on_delivery is not None:
                on_delivery(self._delivery(record.topic, error, message))

        name = self._cluster.topic(record.topic)
        partition = ANY_PARTITION if record.partition is None else record.partition
        try:
            self._producer.produce((name, partition), record.key, record.value, report)
        except BufferError as exception:
            last_error = self._producer.listener.last_error
            cause = f" (last error: {last_error})" if last_error else ""
            raise LogUnavailableError(
                f"the queue of records to send to Kafka is full, with {self._producer.unreported} records{cause}: "
                "try again when Kafka is back"
            ) from exception
        except KafkaException as exception:
            error = error_of(exception)
            place = f"{name}, key {record.key!r}"
            raise (
                refusal_error(error, place, self._access)
                or self._producer.listener.request_error(error, place, self._access)
            ) from exception

    def poll(self, timeout_ms: int) -> None:
        """See :meth:`controlplane.ports.EventWriter.poll`."""
        self._producer.serve(timeout_ms / 1_000)

    @property
    def awaits_delivery(self) -> bool:
        """See :meth:`controlplane.ports.EventWriter.awaits_delivery`."""
        return self._producer.unreported > 0

    def flush(self, timeout_ms: int) -> int:
        """See :meth:`controlplane.ports.EventWriter.flush`."""
        return self._producer.drain(timeout_ms / 1_000)

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`.

        Raises:
            PrerequisiteError: there is no such topic.
        """
        name = self._cluster.topic(topic)
        asked = self._producer.current
        try:
            return len(partition_leaders(asked, name, self._request_timeout_s))
        except KafkaException as exception:
            error = error_of(exception)
            translated = self._producer.listener.request_error(error, f"topic {name}", self._access)
            if isinstance(translated, LogUnavailableError):
                # Without records to send, nothing else shows that this producer is broken.
                self._producer.replace_unanswered(asked, error)
            raise translated from exception

    def close(self) -> None:
        """See :meth:`controlplane.ports.EventWriter.close`; what is not delivered by then is given up."""
        self._producer.close()

    def _delivery(self, topic: str, error: KafkaError | None, message: Message) -> Delivery:
        """Convert a delivery report; a record that was given up has no place."""
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            return Delivery(topic, partition, offset, message.timestamp()[1], None)
        reason, denied = "no place", False
        if error is not None:
            error = self._producer.cause_of(error)
            reason, denied = in_words(error), is_denied(error)
            if denied:
                reason = str(denial_error(error, f"topic {self._cluster.topic(topic)}", self._access))
        return Delivery(topic, -1 if partition is None else partition, -1, -1, reason, denied)


def _new_producer(
    cluster: ClusterConfig, kafka: KafkaConfig, message_timeout_ms: int, listener: LogListener
) -> Producer:
    own: dict[str, object] = {
        **PRODUCER_SETTINGS,
        "message.timeout.ms": message_timeout_ms,
        "request.timeout.ms": message_timeout_ms,
        "socket.timeout.ms": SOCKET_TIMEOUT_MS,
        # A heartbeat or a tick is sent at once, because silence is counted from its append time.
        "linger.ms": 0,
    }
    return new_client(Producer, client_settings(cluster, kafka, listener, _ROLE, own))


def _new_probing_consumer(cluster: ClusterConfig, kafka: KafkaConfig, listener: LogListener) -> Consumer:
    own = {"group.id": f"controlplane-{cluster.name}-probe"}
    return new_client(Consumer, client_settings(cluster, kafka, listener, _ROLE, own))

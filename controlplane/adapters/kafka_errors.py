"""The one place that translates librdkafka's errors into ours.

librdkafka says three things about an error of a transaction: ``fatal`` (this producer is finished),
``txn_requires_abort`` (this transaction is), ``retriable`` (call again to go on). Codes count only where it says none
of them.
"""

from confluent_kafka import KafkaError, KafkaException

from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    FencedError,
    LogContinuityError,
    LogUnavailableError,
    PrerequisiteError,
)

_MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's own codes begin with an underscore
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_REFUSED = _TOO_LARGE | {KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION}
_NOT_CONTINUED = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - as above
        KafkaError._LOG_TRUNCATION,  # noqa: SLF001 - as above
    }
)
_CORRUPT = frozenset(
    {
        KafkaError.INVALID_MSG,
        KafkaError._BAD_MSG,  # noqa: SLF001 - as above
        KafkaError._BAD_COMPRESSION,  # noqa: SLF001 - as above
    }
)
_FENCED = frozenset(
    {
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_TXN_STATE,
        KafkaError._FENCED,  # noqa: SLF001 - as above
        KafkaError._STATE,  # noqa: SLF001 - as above
    }
)


def error_of(exception: KafkaException) -> KafkaError:
    """The error inside an exception of confluent_kafka."""
    error = exception.args[0]
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(error))


def in_words(error: KafkaError) -> str:
    """An error for people: librdkafka's sentence and its name."""
    return f"{error.str()} ({error.name()})"


def is_fencing(error: KafkaError) -> bool:
    """Whether the error finishes a transactional producer: another one took over, or its transaction timed out."""
    return error.fatal() or error.code() in _FENCED


def is_missing(error: KafkaError) -> bool:
    """Whether the error says that the topic or partition does not exist."""
    return error.code() in _MISSING


def request_error(error: KafkaError, what: str, last_error: str = "") -> ControlPlaneError:
    """The error to raise when a request about ``what`` (a topic, a transactional id) failed.

    Args:
        error: what librdkafka said.
        what: for the message.
        last_error: the client's last trouble with a connection, which says more than "timed out".
    """
    if error.code() in _MISSING:
        return PrerequisiteError(
            f"Kafka knows no {what}: {in_words(error)}; create the cluster's topics with 'controlplane topics apply'"
        )
    if error.code() in _DENIED:
        return ConfigurationError(f"Kafka does not allow access to {what}: {in_words(error)}; grant it to this user")
    if is_fencing(error):
        return FencedError(f"Kafka fenced this writer at {what}: {in_words(error)}; another one took over")
    cause = f"; last trouble of the connection: {last_error}" if last_error else ""
    return LogUnavailableError(f"no usable answer from Kafka about {what}: {in_words(error)}{cause}")


def refusal_error(error: KafkaError, place: str) -> ControlPlaneError | None:
    """The error to raise when a record was refused for good, or None when sending it again may succeed.

    Args:
        error: what became of the record.
        place: its topic and key, for the message.
    """
    if error.code() in _TOO_LARGE:
        return ConfigurationError(
            f"Kafka refuses a record for {place} as too large: {in_words(error)}; raise the topic's max.message.bytes"
        )
    if error.code() in _REFUSED:
        return ConfigurationError(f"Kafka refuses a record for {place}: {in_words(error)}")
    if error.code() in _MISSING | _DENIED:
        return request_error(error, place)
    return None


def reading_error(error: KafkaError, place: str) -> ControlPlaneError | None:
    """The error to raise when a partition cannot be read on, or None when the client goes on by itself.

    Args:
        error: what the client reported instead of a record.
        place: topic, partition and offset, as ``topic[partition]@offset``.
    """
    if error.code() in _NOT_CONTINUED:
        return LogContinuityError(
            f"{place} cannot be read: {in_words(error)}; what was there is deleted, or the topic was recreated. "
            "Nothing is skipped: begin again from an offset that is kept, or find out who changed the topic"
        )
    if error.code() in _CORRUPT:
        return LogContinuityError(f"{place} is damaged: {in_words(error)}; check the broker's disk")
    if error.code() in _MISSING:
        return LogContinuityError(f"{place} is no longer there: {in_words(error)}; find out who deleted the topic")
    if error.code() in _DENIED:
        return request_error(error, place)
    return None

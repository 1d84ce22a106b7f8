"""Translates librdkafka's errors into the control plane's; no other module does.

librdkafka marks an error of a transaction as ``fatal`` (the producer is unusable from then on), ``txn_requires_abort``
(the transaction has to be aborted) or ``retriable`` (the call has to be repeated). Its code counts only without a mark.
"""

from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException

from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    FencedError,
    LogContinuityError,
    LogUnavailableError,
    NotAllowedError,
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
_PURGED = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - as above
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - as above
    }
)
_LOGIN_REFUSED = KafkaError._AUTHENTICATION  # noqa: SLF001 - as above
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - as above
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_REFUSED = _TOO_LARGE | {KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION}
_OUT_OF_RANGE = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - as above
    }
)
_TRUNCATED = "log truncation detected"
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


class Access(NamedTuple):
    """The principal and the operation of a request, for the message about a denial.

    Attributes:
        principal: as Kafka writes it, or a description if only Kafka knows it.
        operation: the verb, such as ``read``.
    """

    principal: str = "this client"
    operation: str = "use"


def error_of(exception: KafkaException) -> KafkaError:
    """The error inside an exception of confluent_kafka."""
    error = exception.args[0]
    return error if isinstance(error, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(error))


def in_words(error: KafkaError) -> str:
    """The text of an error for messages: librdkafka's sentence and the error's name."""
    return f"{error.str()} ({error.name()})"


def is_fencing(error: KafkaError) -> bool:
    """Whether a transactional producer cannot be used any more: another one took over, or its transaction timed out."""
    return error.fatal() or error.code() in _FENCED


def is_denied(error: KafkaError) -> bool:
    """Whether the error is a missing right of this client."""
    return error.code() in _DENIED


def is_purged(error: KafkaError) -> bool:
    """Whether the record was given up because its producer was purged."""
    return error.code() in _PURGED


def is_refused_login(error: KafkaError) -> bool:
    """Whether Kafka refuses the client's login."""
    return error.code() == _LOGIN_REFUSED


def is_out_of_range(error: KafkaError) -> bool:
    """Whether the broker that was asked does not have the offset that was asked for."""
    return error.code() in _OUT_OF_RANGE


def is_truncation(error: KafkaError) -> bool:
    """Whether the partition's leader has said that the log ends before the reader's position, in the epoch of that.

    By KIP-320: a broker that leads the partition no longer cannot say that. librdkafka tells it by an error's text
    alone where readers are not to be reset to another offset.
    """
    return error.code() == KafkaError._LOG_TRUNCATION or (  # noqa: SLF001 - librdkafka's own codes begin so
        is_out_of_range(error) and _TRUNCATED in error.str()
    )


def is_missing(error: KafkaError) -> bool:
    """Whether the topic or partition does not exist."""
    return error.code() in _MISSING


def denial_error(error: KafkaError, what: str, access: Access) -> ControlPlaneError:
    """The error to raise for a missing right: it names the principal and the right, and how to grant it."""
    return NotAllowedError(access.principal, access.operation, what, error.name())


def request_error(
    error: KafkaError, what: str, last_error: str = "", access: Access | None = None, *, login_refused: bool = False
) -> ControlPlaneError:
    """The error to raise when a request about ``what`` (a topic, a transactional id) failed.

    Args:
        error: the error of the request.
        what: the object of the request, for the message.
        last_error: the last error of the client's connections, which is more specific than "timed out".
        access: the principal and the operation.
        login_refused: whether that last error was a refused login.
    """
    access = access or Access()
    if error.code() in _MISSING:
        return PrerequisiteError(
            f"Kafka has no {what}: {in_words(error)}; is the cluster's name right (--cluster)? A new cluster's "
            "topics are created by 'controlplane topics apply'"
        )
    if error.code() in _DENIED:
        return denial_error(error, what, access)
    if is_fencing(error):
        return FencedError(f"Kafka fenced this writer at {what}: {in_words(error)}; another writer took over")
    if login_refused or is_refused_login(error):
        trouble = in_words(error) if is_refused_login(error) or not last_error else last_error
        return ConfigurationError(
            f"Kafka refuses the login of {access.principal}: {trouble}; check user, password and sasl.mechanism "
            "in the security settings"
        )
    cause = f"; last error of the connection: {last_error}" if last_error else ""
    # A broker that is frozen keeps its connections, and the client does not say which one it waited for.
    advice = "; look whether all brokers run and answer" if error.code() == _TIMED_OUT else ""
    return LogUnavailableError(f"no usable answer from Kafka about {what}: {in_words(error)}{cause}{advice}")


def refusal_error(error: KafkaError, place: str, access: Access | None = None) -> ControlPlaneError | None:
    """The error to raise when a record was refused permanently; None if sending it again may succeed.

    Args:
        error: the error of the delivery.
        place: the record's topic and key, for the message.
        access: the principal and the operation.
    """
    if error.code() in _TOO_LARGE:
        return ConfigurationError(
            f"Kafka refuses a record for {place} as too large: {in_words(error)}; raise the topic's max.message.bytes"
        )
    if error.code() in _REFUSED:
        return ConfigurationError(f"Kafka refuses a record for {place}: {in_words(error)}")
    if error.code() in _MISSING | _DENIED:
        return request_error(error, place, access=access)
    return None


def reading_error(error: KafkaError, place: str, access: Access | None = None) -> ControlPlaneError | None:
    """The error to raise when a partition cannot be read any further; None if the client continues by itself.

    Args:
        error: what the client reported instead of a record.
        place: topic, partition and offset, as ``topic[partition]@offset``.
        access: the principal and the operation.
    """
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        # librdkafka asks for the coordinator of every consumer's group, but our consumers do not use their groups.
        return None
    if is_out_of_range(error) or is_truncation(error):
        return LogContinuityError(
            f"{place} cannot be read: {in_words(error)}; its records were deleted, the brokers were restored from an "
            "older copy, or the topic was recreated. Nothing is skipped: find out which "
            "(docs/how-to/survive-silence-and-failures.md has the steps)"
        )
    if error.code() in _CORRUPT:
        return LogContinuityError(f"{place} is damaged: {in_words(error)}; check the broker's disk")
    if error.code() in _MISSING:
        return LogContinuityError(f"{place} is no longer there: {in_words(error)}; find out who deleted the topic")
    if error.code() in _DENIED:
        return request_error(error, place, access=access)
    return None

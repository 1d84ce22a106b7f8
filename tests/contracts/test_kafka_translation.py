"""librdkafka's errors and logs become ours, by its own flags first and by code second; no broker is needed."""

import re
from pathlib import Path

import pytest
import structlog
from confluent_kafka import KafkaError
from prometheus_client import REGISTRY

from controlplane.adapters.kafka_client import client_settings
from controlplane.adapters.kafka_errors import Access, is_fencing, reading_error, refusal_error, request_error
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    FencedError,
    LogContinuityError,
    LogUnavailableError,
    NotAllowedError,
    PrerequisiteError,
)


@pytest.mark.parametrize(
    ("error", "fencing"),
    [
        (KafkaError(KafkaError._FENCED, fatal=True), True),  # noqa: SLF001 - librdkafka's own codes begin so
        (KafkaError(KafkaError.UNKNOWN, fatal=True), True),
        (KafkaError(KafkaError.INVALID_PRODUCER_EPOCH), True),
        (KafkaError(KafkaError.INVALID_TXN_STATE), True),
        (KafkaError(KafkaError._STATE), True),  # noqa: SLF001 - as above
        (KafkaError(KafkaError._TIMED_OUT, retriable=True), False),  # noqa: SLF001 - as above
        (KafkaError(KafkaError._INCONSISTENT, txn_requires_abort=True), False),  # noqa: SLF001 - as above
    ],
)
def test_what_finishes_a_transactional_producer(error: KafkaError, fencing: bool) -> None:
    """Going on after one of these would fail for ever; taking another for one would give up leading for nothing."""
    assert is_fencing(error) is fencing


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, PrerequisiteError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError._AUTHENTICATION, ConfigurationError),  # noqa: SLF001 - as above
        (KafkaError.PRODUCER_FENCED, FencedError),
        (KafkaError._TRANSPORT, LogUnavailableError),  # noqa: SLF001 - as above
        (KafkaError.NOT_LEADER_FOR_PARTITION, LogUnavailableError),
    ],
)
def test_what_a_failed_request_means(code: int, expected: type[ControlPlaneError]) -> None:
    """The caller retries, stops or tells the operator by type; people get the place and the connection's trouble."""
    error = request_error(KafkaError(code), "topic demo.decisions", "connection refused")
    assert type(error) is expected
    assert "demo.decisions" in str(error) or "login" in str(error)
    assert ("connection refused" in str(error)) is (expected is LogUnavailableError)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, ConfigurationError),
        (KafkaError.INVALID_RECORD, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError._UNKNOWN_TOPIC, PrerequisiteError),  # noqa: SLF001 - as above
        (KafkaError._MSG_TIMED_OUT, None),  # noqa: SLF001 - as above
        (KafkaError._PURGE_QUEUE, None),  # noqa: SLF001 - as above
    ],
)
def test_which_refusals_are_for_good(code: int, expected: type[ControlPlaneError] | None) -> None:
    """A record that timed out may be sent again; one that is too large never fits."""
    error = refusal_error(KafkaError(code), "demo.decisions")
    assert (None if error is None else type(error)) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._AUTO_OFFSET_RESET, LogContinuityError),  # noqa: SLF001 - as above
        (KafkaError.OFFSET_OUT_OF_RANGE, LogContinuityError),
        (KafkaError._LOG_TRUNCATION, LogContinuityError),  # noqa: SLF001 - as above
        (KafkaError._BAD_MSG, LogContinuityError),  # noqa: SLF001 - as above
        (KafkaError.UNKNOWN_TOPIC_OR_PART, LogContinuityError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAllowedError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, None),
        (KafkaError._TRANSPORT, None),  # noqa: SLF001 - as above
        (KafkaError.NOT_LEADER_FOR_PARTITION, None),
    ],
)
def test_what_stops_a_reader(code: int, expected: type[ControlPlaneError] | None) -> None:
    """A lost connection heals by itself; a lost offset or a damaged record would be skipped in silence."""
    error = reading_error(KafkaError(code), "demo.decisions[0]@7")
    assert (None if error is None else type(error)) is expected
    assert error is None or "demo.decisions[0]@7" in str(error)


def test_a_lost_offset_leads_to_the_page_with_the_steps() -> None:
    """All brokers restored from an older copy end every process with this sentence: it has to say what to do."""
    sentence = str(reading_error(KafkaError(KafkaError.OFFSET_OUT_OF_RANGE), "demo.decisions[0]@7"))
    assert "restored from an older copy" in sentence
    (page,) = re.findall(r"docs/[a-z/-]+\.md", sentence)
    said = " ".join((Path(__file__).parents[2] / page).read_text().split())
    assert "restored from an older copy" in said


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"security.protocol": "ssl"}, "User:ANONYMOUS"),
        ({"security.protocol": "SASL_SSL", "sasl.username": "ada", "ssl.certificate.location": "x"}, "User:ada"),
        ({"security.protocol": "SSL", "ssl.certificate.location": "x"}, "the user of this client's certificate"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "this client"),
    ],
)
def test_a_denial_says_who_lacks_what_and_what_to_run(security: dict[str, str], principal: str) -> None:
    """Whoever reads it can hand it to somebody who may mend it; where only Kafka knows the name, none is invented."""
    access = Access(KafkaConfig("broker:9092", security).principal, "write")
    sentence = str(request_error(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "topic demo.intents", "", access))
    grantee = principal if principal.startswith("User:") else "User:NAME"
    assert sentence == (
        f"Kafka does not allow {principal} to write topic demo.intents (TOPIC_AUTHORIZATION_FAILED): 'controlplane "
        "acls show' says which role needs it, and a super user of Kafka gives the role with "
        f"'controlplane acls apply --principal ROLE={grantee}'"
    )


def test_security_settings_do_not_weaken_the_promises() -> None:
    """Users pass TLS and SASL through; acknowledgements and isolation are not theirs to change."""
    kafka = KafkaConfig("broker:9092", {"security.protocol": "SSL", "acks": "0", "allow.auto.create.topics": "true"})
    settings = client_settings(ClusterConfig("demo"), kafka, LogListener("test", "demo"), "events", {"acks": "all"})
    assert settings["security.protocol"] == "SSL"
    assert settings["acks"] == "all"
    assert settings["allow.auto.create.topics"] is False
    assert settings["bootstrap.servers"] == "broker:9092"


def test_a_request_that_timed_out_says_where_to_look() -> None:
    """A frozen broker keeps its connections, so there is no other error that would name it."""
    timed_out = KafkaError(KafkaError._TIMED_OUT, "Failed to get offsets: Local: Timed out")  # noqa: SLF001 - as above
    assert str(request_error(timed_out, "topic demo.heartbeats")).endswith(
        "Local: Timed out (_TIMED_OUT); look whether all brokers run and answer"
    )
    lost = KafkaError(KafkaError._TRANSPORT)  # noqa: SLF001 - as above
    assert "look whether" not in str(request_error(lost, "topic demo.heartbeats", "connection refused"))


def test_logs_and_errors_of_the_client_are_taken() -> None:
    """What librdkafka logs as an error it retries: a warning, and counted, and the last one is kept for messages."""
    listener = LogListener("heard", "demo")
    with structlog.testing.capture_logs() as logs:
        listener.log(40, "%s [%s]", "FAIL", "refused")
        listener.log(30, "%s", "slow")
        listener.log(20, "%s", "fine")
    assert [(entry["log_level"], entry["text"]) for entry in logs] == [
        ("warning", "FAIL [refused]"),
        ("info", "slow"),
        ("debug", "fine"),
    ]
    listener.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))  # noqa: SLF001 - as above
    assert listener.last_error == "1/1 brokers are down (_ALL_BROKERS_DOWN)"
    labels = {"client": "heard", "error": "_ALL_BROKERS_DOWN"}
    assert REGISTRY.get_sample_value("controlplane_kafka_client_errors_total", labels) == 1

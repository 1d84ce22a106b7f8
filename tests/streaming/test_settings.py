"""The pipeline's settings: what they refuse, and how Kafka's are handed to Spark. No Spark runs."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, InvariantViolationError, LogContinuityError, NotAllowedError
from streaming.config import LoadRuleConfig, PipelineConfig, SparkConfig
from streaming.jobs.restarts import stopping_error
from streaming.sources import client_options, java_client_settings

CLUSTER, KAFKA = ClusterConfig("c"), KafkaConfig("localhost:9092")


def test_published_intervals_are_the_defaults() -> None:
    """One minute between evaluations, 30 minutes of rest and of trust in a report: the published values."""
    rules = LoadRuleConfig()
    assert (rules.evaluation_interval_ms, rules.grace_period_ms, rules.report_lifetime_ms) == (
        60_000,
        1_800_000,
        1_800_000,
    )


@pytest.mark.parametrize("wrong", [{"evaluation_interval_ms": 0}, {"grace_period_ms": -1}, {"report_lifetime_ms": 0}])
def test_impossible_intervals_are_refused(wrong: dict[str, Any]) -> None:
    """An interval of nothing would evaluate never or always."""
    with pytest.raises(ConfigurationError, match="intervals of the load rules"):
        LoadRuleConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"max_records_per_batch": 0}, {"trigger_interval_ms": -1}, {"restart_limit": -1}])
def test_impossible_batches_are_refused(wrong: dict[str, Any]) -> None:
    """A batch of nothing would never get on."""
    with pytest.raises(ConfigurationError, match="positive"):
        PipelineConfig(CLUSTER, KAFKA, Path("tables"), SparkConfig(jars=()), **wrong)


@pytest.mark.parametrize("wrong", [0, -60_000, 90_000])
def test_parts_of_minutes_are_refused(wrong: int) -> None:
    """A window of the history of loads begins with a minute of the clock."""
    with pytest.raises(ConfigurationError, match="history_window_ms has to be whole minutes"):
        PipelineConfig(CLUSTER, KAFKA, Path("tables"), SparkConfig(jars=()), history_window_ms=wrong)


def test_too_little_memory_is_refused() -> None:
    """Spark fails with less than its own reserve, and says it in other words."""
    with pytest.raises(ConfigurationError, match="512 MiB"):
        SparkConfig(jars=(), driver_memory_mib=100)


def test_tls_and_passwords_reach_the_java_client() -> None:
    """What librdkafka is told is told to Spark's client too, under Java's names and quoted for its login module."""
    settings = java_client_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "ada",
            "sasl.password": 'a "quoted" one',
            "ssl.ca.location": "/etc/ca.pem",
        }
    )
    assert settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.truststore.type": "PEM",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'password="a \\"quoted\\" one" username="ada";',
    }


def test_client_options_carry_the_prefix() -> None:
    """Spark hands on only what begins with ``kafka.``; without it a setting is ignored in silence."""
    options = client_options(KafkaConfig("a:1,b:2", {"security.protocol": "SSL"}))
    assert options == {"kafka.bootstrap.servers": "a:1,b:2", "kafka.security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"linger.ms": "5"}, "cannot pass the setting 'linger.ms' on"),
        ({"sasl.username": "ada"}, r"PLAIN with \['username'\]"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "a"}, r"GSSAPI with \['username'\]"),
    ],
)
def test_settings_without_a_counterpart_or_half_a_login_are_refused(wrong: dict[str, str], sentence: str) -> None:
    """A setting that would be dropped in silence could mean an open connection where a closed one was asked for."""
    with pytest.raises(ConfigurationError, match=sentence):
        java_client_settings(wrong)


def test_errors_that_forbid_a_restart_are_recognised() -> None:
    """Spark reports a failure as text; what another start cannot heal must stop the pipeline under its own name."""
    text = (
        "[STREAM_FAILED] Query terminated: Traceback (most recent call last):\n  File x\n"
        "controlplane.errors.LogContinuityError: part 1 of 2 stands where part 0 has to\n\tat org.apache.spark"
    )
    stopping = stopping_error(text, KAFKA)
    assert type(stopping) is LogContinuityError
    assert str(stopping) == "part 1 of 2 stands where part 0 has to"
    assert type(stopping_error("x.InvariantViolationError: y", KAFKA)) is InvariantViolationError
    assert stopping_error("org.apache.kafka.common.errors.TimeoutException: no answer", KAFKA) is None


def test_what_kafka_does_not_allow_forbids_a_restart() -> None:
    """A right that is missing or a wrong password does not pass: one sentence, instead of restarts for ever."""
    kafka = KafkaConfig("localhost:9092", {"sasl.username": "spark", "sasl.password": "hidden"})
    text = (
        "x\norg.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [c.heartbeats]"
    )
    stopping = stopping_error(text, kafka)
    assert type(stopping) is NotAllowedError
    assert "does not allow User:spark to use topic c.heartbeats (TopicAuthorizationException)" in str(stopping)
    text = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: Invalid username"
    refused = stopping_error(text, kafka)
    assert type(refused) is ConfigurationError
    assert "Kafka refuses the login of User:spark: Authentication failed" in str(refused)
    assert "hidden" not in f"{stopping}{refused}{kafka}"


def test_a_clients_certificate_reaches_the_java_client(tmp_path: Path) -> None:
    """As the contents of the files, which is how Java takes them; a file that is missing is named."""
    for name in ("certificate", "key"):
        (tmp_path / name).write_text(f"the {name}", encoding="utf-8")
    settings = java_client_settings(
        {"ssl.certificate.location": str(tmp_path / "certificate"), "ssl.key.location": str(tmp_path / "key")}
    )
    assert settings == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the certificate",
        "ssl.keystore.key": "the key",
    }
    with pytest.raises(ConfigurationError, match=r"ssl.key.location=/none cannot be read: No such file"):
        java_client_settings({"ssl.key.location": "/none"})

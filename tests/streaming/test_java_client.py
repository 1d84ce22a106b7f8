"""Kafka's settings as Spark's client in Java takes them."""

from pathlib import Path

import pytest

from controlplane.config import KafkaConfig
from controlplane.errors import ConfigurationError
from streaming.java_client import client_options, java_client_settings


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


@pytest.mark.parametrize(("ours", "of_java"), [("none", ""), ("https", "https")])
def test_the_check_of_names_is_called_off_in_javas_way(ours: str, of_java: str) -> None:
    """Java takes ``none`` for the name of a check that it does not know, and fails each handshake."""
    name = "ssl.endpoint.identification.algorithm"
    assert java_client_settings({name: ours}) == {name: of_java}


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

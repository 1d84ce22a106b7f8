"""A security setting that is wrong: named in a sentence, before anybody is asked."""

from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.redis_connection import RedisConnection
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError

CLUSTER = ClusterConfig("local")
NOWHERE = "127.0.0.1:1"


def _transactions(kafka: KafkaConfig) -> None:
    KafkaTransactionalWriter(CLUSTER, kafka, 5_000).open()


MAKERS: tuple[Callable[[KafkaConfig], object], ...] = (
    lambda kafka: KafkaLogReader(CLUSTER, kafka),
    lambda kafka: KafkaEventWriter(CLUSTER, kafka),
    _transactions,
    lambda kafka: KafkaAdmin("local", kafka.bootstrap_servers, kafka.security),
)


@pytest.fixture
def junk(tmp_path: Path) -> Path:
    """A file that is no certificate."""
    path = tmp_path / "junk.pem"
    path.write_text("no certificate")
    return path


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("security", "said"),
    [
        ({"foo.bar": "1"}, 'No such configuration property: "foo.bar"'),
        ({"security.protocol": "SLL"}, 'Invalid value "SLL" for configuration property "security.protocol"'),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is not set: give it"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.username and sasl.password must be set"),
        ({"ssl.ca.location": "/nope.pem"}, "ssl.ca.location=/nope.pem cannot be read"),
        ({"security.protocol": "SSL", "ssl.key.location": "/nope"}, "ssl.key.location=/nope cannot be"),
    ],
)
def test_a_wrong_setting_is_named(make: Callable[[KafkaConfig], object], security: dict[str, str], said: str) -> None:
    """Whichever client is made first."""
    with pytest.raises(ConfigurationError) as refusal:
        make(KafkaConfig(NOWHERE, security))
    assert said in str(refusal.value)


@pytest.mark.parametrize("make", MAKERS)
def test_a_file_of_something_else_is_named(make: Callable[[KafkaConfig], object], junk: Path) -> None:
    """What OpenSSL did not like about it says little."""
    with pytest.raises(ConfigurationError, match=f"ssl.ca.location failed.*ssl.ca.location is {junk}"):
        make(KafkaConfig(NOWHERE, {"security.protocol": "SSL", "ssl.ca.location": str(junk)}))


def test_settings_that_name_no_file_or_a_folder_are_taken(tmp_path: Path) -> None:
    """``probe`` looks for the system's certificates, and a folder may hold several."""
    for place in ("probe", "", str(tmp_path)):
        KafkaLogReader(CLUSTER, KafkaConfig(NOWHERE, {"security.protocol": "SSL", "ssl.ca.location": place})).close()


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
def test_a_file_of_the_redis_address_that_is_not_there_is_named(option: str) -> None:
    """It is no store that does not answer: nobody has to wait for it."""
    with pytest.raises(ConfigurationError, match=f"cannot be read: {option}=/nope.pem"):
        RedisConnection(CLUSTER, f"rediss://localhost:1/0?{option}=/nope.pem", 100)


def test_a_ca_file_of_the_redis_address_that_is_none_is_named(junk: Path) -> None:
    """As with Kafka; a folder is none either."""
    for place in (junk, junk.parent):
        with pytest.raises(ConfigurationError, match=f"ssl_ca_certs={place}: it contains no certificates"):
            RedisConnection(CLUSTER, f"rediss://localhost:1/0?ssl_ca_certs={place}", 100)

"""What the settings refuse before anything is asked."""

import pytest

from controlplane.config import KafkaConfig
from controlplane.errors import ConfigurationError


@pytest.mark.parametrize(
    "servers", ["k:1", "k1:9092, k2:65535", "kafka", "[::1]", "[::1]:9092", "ssl://kafka", "ssl://kafka:9093"]
)
def test_usable_bootstrap_servers_pass(servers: str) -> None:
    """All that librdkafka understands is left to it, an address without a port included."""
    assert KafkaConfig(servers).bootstrap_servers == servers


@pytest.mark.parametrize("wrong", ["k:0", "k:65536", "k:", "k:http", "k:-1"])
def test_a_port_that_is_none_is_named(wrong: str) -> None:
    """Where 99999 was written, librdkafka asks port 34463, and the messages then name a port nobody knows."""
    with pytest.raises(ConfigurationError, match=f"bootstrap server '{wrong}'"):
        KafkaConfig(f"k:9092,{wrong}")

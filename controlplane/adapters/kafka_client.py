"""Makes and closes every librdkafka client: explicit settings, and an error that names a wrong setting."""

import os
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException

from controlplane.adapters.kafka_errors import error_of
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.config import SASL_MECHANISM, ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError

_Client = TypeVar("_Client")

# A broker that is back has to be found within half a second, because nodes prove to it that they are alive.
RECONNECT_BACKOFF_MAX_MS: Final = 500
SOCKET_TIMEOUT_MS: Final = 10_000

_COMMON_SETTINGS: Mapping[str, str | int | bool] = MappingProxyType(
    {
        "allow.auto.create.topics": False,
        "enable.metrics.push": False,
        "log.connection.close": False,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 500,
        "socket.connection.setup.timeout.ms": 3_000,
        "socket.keepalive.enable": True,
        "socket.nagle.disable": True,
        "topic.metadata.refresh.fast.interval.ms": 100,
        "topic.metadata.refresh.interval.ms": 60_000,
        # A missing topic is an operator's mistake: report it earlier than librdkafka's 30 s.
        "topic.metadata.propagation.max.ms": 5_000,
    }
)

PRODUCER_SETTINGS: Mapping[str, object] = MappingProxyType(
    {
        "acks": "all",
        "enable.idempotence": True,
        "max.in.flight.requests.per.connection": 5,
        "message.max.bytes": 1_048_588,
        "partitioner": "murmur2_random",
        "compression.type": "none",
        "queue.buffering.max.messages": 100_000,
    }
)
"""The settings that producers of single records and of transactions share: order per key, all in-sync replicas."""

_WRONG_SETTING = KafkaError._INVALID_ARG  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_PROBED = "probe"
"""The value of ``ssl.ca.location`` that is not a file: librdkafka then looks for the system's certificates."""


def client_settings(
    cluster: ClusterConfig, kafka: KafkaConfig, listener: LogListener, role: str, own: Mapping[str, object]
) -> dict[str, object]:
    """The whole configuration of one client.

    The user's security settings come first, and all others override them, so that they cannot weaken the settings on
    which the system's guarantees rest.

    Args:
        cluster: its name is part of the client id, which brokers log.
        kafka: the servers, and the user's settings.
        listener: receives log lines and errors.
        role: the client's role, such as ``reader``.
        own: the settings that this kind of client needs.
    """
    return {
        **kafka.security,
        **_COMMON_SETTINGS,
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": f"controlplane-{cluster.name}-{role}",
        "error_cb": listener.on_error,
        "logger": listener,
        **own,
    }


def close_in_background(consumer: Consumer) -> None:
    """Close a consumer in a thread, because closing takes seconds while the client resolves a host name."""
    threading.Thread(target=consumer.close, name="kafka-close", daemon=True).start()


def new_client(make: Callable[[dict[str, Any]], _Client], settings: dict[str, Any]) -> _Client:
    """Make a client of librdkafka with these settings.

    Raises:
        ConfigurationError: a setting is unknown, has an invalid value, or names a file that is missing, unreadable or
            of the wrong kind.
    """
    files = {name: path for name, path in settings.items() if _is_file(name) and path and path != _PROBED}
    for name, path in files.items():
        if not os.access(path, os.R_OK):
            raise ConfigurationError(f"the file of the security setting {name}={path} cannot be read")
    try:
        return make(settings)
    except KafkaException as exception:
        error = error_of(exception)
        if error.code() != _WRONG_SETTING:
            raise
        trouble = error.str().strip().removeprefix("Failed to create ")
        named = "".join(f"; {name} is {path}" for name, path in files.items() if name in trouble)
        if "SASL mechanism" in trouble and not any(name.startswith(SASL_MECHANISM) for name in settings):
            named = f"; {SASL_MECHANISM} is not set: give it, such as {SASL_MECHANISM}=SCRAM-SHA-512"
        message = f"Kafka's client cannot work with the security settings: {trouble}{named}"
        raise ConfigurationError(message) from exception


def _is_file(setting: str) -> bool:
    return setting.startswith("ssl.") and setting.endswith(".location") and setting != "ssl.engine.location"

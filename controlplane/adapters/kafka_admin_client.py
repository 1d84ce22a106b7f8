"""The client that asks Kafka about topics and rights, and what its failures mean."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from controlplane.adapters.kafka_client import ClientEar, new_client
from controlplane.adapters.kafka_errors import Access, error_of
from controlplane.config import principal_of
from controlplane.errors import ControlPlaneError, LogUnavailableError

REQUEST_TIMEOUT_S = 10.0


class KafkaAdmin:
    """One connection for administration.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: one of them is wrong.

    Attributes:
        client: confluent_kafka's.
        principal: whom Kafka takes this client for.
    """

    def __init__(self, bootstrap_servers: str, security: Mapping[str, str]) -> None:
        """Prepare; connections are made when they are needed."""
        self.principal = principal_of(security)
        self._ear = ClientEar("admin")
        settings: dict[str, Any] = {
            **security,
            "bootstrap.servers": bootstrap_servers,
            "socket.timeout.ms": int(REQUEST_TIMEOUT_S * 1_000),
            "reconnect.backoff.max.ms": 500,
            "error_cb": self._ear.on_error,
            # What goes wrong is raised; librdkafka's own remarks would only stand between a command's lines.
            "log_level": 2,
        }
        self.client = new_client(AdminClient, settings)

    def failure(
        self, failed: KafkaError | KafkaException | TimeoutError, operation: str, what: str
    ) -> ControlPlaneError:
        """The error to raise when a request failed.

        Args:
            failed: how.
            operation: the verb of what was asked, such as ``create``.
            what: its object.
        """
        self.client.poll(0)  # the callback that tells of a refused login runs only here
        if isinstance(failed, TimeoutError):
            return LogUnavailableError(f"Kafka did not {operation} {what} in time")
        error = failed if isinstance(failed, KafkaError) else error_of(failed)
        return self._ear.request_error(error, what, Access(self.principal, operation))

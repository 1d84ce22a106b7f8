"""The client for Kafka's administrative requests (topics, rights), and the errors to raise for its failures."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from controlplane.adapters.kafka_client import RECONNECT_BACKOFF_MAX_MS, SOCKET_TIMEOUT_MS, new_client
from controlplane.adapters.kafka_errors import Access, error_of
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.config import principal_of
from controlplane.errors import ControlPlaneError, LogUnavailableError

# Kafka answers a change before every broker shows it.
CHANGE_VISIBLE_DEADLINE_S = 15.0
CHANGE_VISIBLE_POLL_S = 0.05
REQUEST_TIMEOUT_S = SOCKET_TIMEOUT_MS / 1_000


class KafkaAdmin:
    """One connection for administration.

    Args:
        cluster: the cluster's name, for log lines.
        bootstrap_servers: ``host:port`` list, comma separated.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: one of these settings is wrong.

    Attributes:
        client: confluent_kafka's client.
        principal: the principal as which Kafka authenticates this client.
    """

    def __init__(self, cluster: str, bootstrap_servers: str, security: Mapping[str, str]) -> None:
        """Create the client; connections are opened when they are needed."""
        self.principal = principal_of(security)
        self._listener = LogListener("admin", cluster)
        settings: dict[str, Any] = {
            **security,
            "bootstrap.servers": bootstrap_servers,
            "socket.timeout.ms": SOCKET_TIMEOUT_MS,
            "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
            "error_cb": self._listener.on_error,
            # Failures are raised. Log lines of librdkafka would only disturb the output of a command.
            "log_level": 2,
        }
        self.client = new_client(AdminClient, settings)

    def failure(
        self, failed: KafkaError | KafkaException | TimeoutError, operation: str, what: str
    ) -> ControlPlaneError:
        """The error to raise when a request failed.

        Args:
            failed: the client's error.
            operation: the verb of the request, such as ``create``.
            what: the object of the request.
        """
        self.client.poll(0)  # the callback that reports a refused login runs only here
        if isinstance(failed, TimeoutError):
            return LogUnavailableError(f"Kafka did not {operation} {what} in time")
        error = failed if isinstance(failed, KafkaError) else error_of(failed)
        return self._listener.request_error(error, what, Access(self.principal, operation))

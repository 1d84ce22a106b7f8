"""What every librdkafka client of ours has in common: explicit settings, and an ear for its logs and errors."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from prometheus_client import Counter

from controlplane.adapters.kafka_errors import Access, error_of, is_refused_login, request_error
from controlplane.config import SASL_MECHANISM, ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, ControlPlaneError

_Client = TypeVar("_Client")

_CLIENT_ERRORS = Counter(
    "controlplane_kafka_client_errors",
    "Errors that librdkafka reported (connections, brokers, authentication), by client and error name",
    ["client", "error"],
)

_CLIENTS_REPLACED = Counter(
    "controlplane_kafka_clients_replaced",
    "Clients that another one stands in for, because they got nowhere although Kafka answered the other, by client",
    ["client"],
)

_COMMON_SETTINGS: Mapping[str, str | int | bool] = MappingProxyType(
    {
        "allow.auto.create.topics": False,
        "enable.metrics.push": False,
        "log.connection.close": False,
        # A broker that comes back has to be found within half a second: nodes prove by it that they live.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 500,
        "socket.connection.setup.timeout.ms": 3_000,
        "socket.keepalive.enable": True,
        "socket.nagle.disable": True,
        "topic.metadata.refresh.fast.interval.ms": 100,
        "topic.metadata.refresh.interval.ms": 60_000,
        # A topic that does not exist is an error of the operator's: say so soon, not after 30 s.
        "topic.metadata.propagation.max.ms": 5_000,
    }
)

_PYTHON_ERROR_LEVEL = 40
_PYTHON_WARNING_LEVEL = 30


_WRONG_SETTING = KafkaError._INVALID_ARG  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_PROBED = "probe"
"""The ``ssl.ca.location`` that is no file: librdkafka looks for the system's certificates."""

_REPEATED_EVERY_S = 5.0
_KINDS_KEPT = 100
_PARTICULARS = re.compile(r"\(after .*|\d+")


class _Repetitions:
    """Lets the first line of a kind through at once, and then one every few seconds, with the number held back.

    While a broker is away each client tries again about ten times a second, and says the same each time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, int]] = {}

    def held_back(self, text: str) -> int | None:
        """How many lines of this kind were held back before this one; None holds this one back, too."""
        kind = _PARTICULARS.sub("#", text)
        now_s = self._now_s()
        with self._lock:
            told_at_s, count = self._told.get(kind, (-_REPEATED_EVERY_S, 0))
            if now_s - told_at_s < _REPEATED_EVERY_S:
                self._told[kind] = told_at_s, count + 1
                return None
            if len(self._told) >= _KINDS_KEPT:
                self._told.clear()
            self._told[kind] = now_s, 0
            return count


class ClientEar:
    """Listens to one client: logs go to structlog, errors are counted and the last one is kept for messages.

    What is said again and again is logged at once and then every five seconds.

    librdkafka calls "error" what it retries by itself, so its errors are warnings here; what the caller has to know
    is raised or returned.

    Attributes:
        last_error: the latest trouble in words, empty if there was none.
        login_refused: whether that was a login that Kafka refused.
    """

    def __init__(self, client: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """Name the client, as it appears in logs and metrics; ``now_s`` times repetitions, in seconds."""
        self.last_error = ""
        self.login_refused = False
        self._client = client
        self._logger = structlog.get_logger().bind(kafka_client=client)
        self._repetitions = _Repetitions(now_s)

    def log(self, level: int, template: str, *values: object) -> None:
        """Take a log line of librdkafka; the signature is that of :meth:`logging.Logger.log`."""
        text = template % values
        if level < _PYTHON_WARNING_LEVEL:
            self._logger.debug("kafka_client_log", text=text)
            return
        held_back = self._repetitions.held_back(text)
        if held_back is None:
            return
        log = self._logger.warning if level >= _PYTHON_ERROR_LEVEL else self._logger.info
        log("kafka_client_log", text=text, **({"held_back": held_back} if held_back else {}))

    def on_error(self, error: KafkaError) -> None:
        """Take an error that belongs to no call: a lost connection, a refused login."""
        # When a login is refused librdkafka goes on to say that no broker is left: that is not the news.
        if not self.login_refused or error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - librdkafka's own
            self.last_error = f"{error.str()} ({error.name()})"
            self.login_refused = is_refused_login(error)
        _CLIENT_ERRORS.labels(self._client, error.name()).inc()

    def request_error(self, error: KafkaError, what: str, access: Access) -> ControlPlaneError:
        """The error to raise when a request of this client about ``what`` failed, with what the ear has heard."""
        return request_error(error, what, self.last_error, access, login_refused=self.login_refused)


def client_settings(
    cluster: ClusterConfig, kafka: KafkaConfig, ear: ClientEar, client: str, own: Mapping[str, object]
) -> dict[str, object]:
    """The whole configuration of one client.

    The user's security settings come first, so that they cannot weaken what the system's promises rest on.

    Args:
        cluster: its name is part of the client id, which brokers log.
        kafka: where to connect, and how.
        ear: gets logs and errors.
        client: the client's role, such as ``reader``.
        own: the settings that this kind of client needs.
    """
    return {
        **kafka.security,
        **_COMMON_SETTINGS,
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": f"controlplane-{cluster.name}-{client}",
        "error_cb": ear.on_error,
        "logger": ear,
        **own,
    }


def close_aside(consumer: Consumer) -> None:
    """Close a consumer in its own time: one that looks for a host whose name nobody resolves takes seconds."""
    threading.Thread(target=consumer.close, name="kafka-close", daemon=True).start()


def tell_replaced(cluster: str, client: str, places: Iterable[tuple[str, int]]) -> None:
    """Say that a client was replaced that got nowhere about these places."""
    _CLIENTS_REPLACED.labels(client).inc()
    structlog.get_logger().warning(
        "Kafka client replaced: it got nowhere, and another one was answered at once",
        cluster=cluster,
        kafka_client=client,
        at=[f"{name}[{number}]" for name, number in sorted(places)],
    )


def new_client(make: Callable[[dict[str, Any]], _Client], settings: dict[str, Any]) -> _Client:
    """A client of librdkafka with these settings.

    Raises:
        ConfigurationError: there is no such setting, it does not take such a value, or it names a file that is not
            there, not to be read, or not what it has to be.
    """
    files = {name: path for name, path in settings.items() if _is_file(name) and path and path != _PROBED}
    for name, path in files.items():
        if not os.access(path, os.R_OK):
            raise ConfigurationError(f"the security setting {name}={path}: this file cannot be read")
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

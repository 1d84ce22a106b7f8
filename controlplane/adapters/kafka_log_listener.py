"""Receives what librdkafka reports outside of calls: log lines, and errors of a client's connections."""

import re
import threading
import time
from collections.abc import Callable

import structlog
from confluent_kafka import KafkaError

from controlplane.adapters.kafka_errors import Access, in_words, is_refused_login, request_error
from controlplane.adapters.kafka_metrics import CLIENT_ERRORS
from controlplane.adapters.kafka_new_leaders import NewLeaders
from controlplane.errors import ControlPlaneError

_PYTHON_ERROR_LEVEL = 40
_PYTHON_WARNING_LEVEL = 30

_UNREACHABLE = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}  # noqa: SLF001 - its own codes
"""What librdkafka reports of a broker whose connection it has lost, or which refuses a new one."""
_REPEAT_INTERVAL_S = 5.0
_MAX_KINDS = 100
_VARYING_PARTS = re.compile(r"\(after .*|\d+")


class _RepetitionLimit:
    """Passes the first line of a kind at once, then one every five seconds with the number of lines suppressed.

    Lines that differ only in numbers and durations are of one kind. While a broker is down, each client reconnects
    about ten times a second and logs the same line each time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._last_passed: dict[str, tuple[float, int]] = {}

    def suppressed_before(self, text: str) -> int | None:
        """The number of suppressed lines of this kind before this one; None if this line is suppressed as well."""
        kind = _VARYING_PARTS.sub("#", text)
        now_s = self._now_s()
        with self._lock:
            passed_at_s, count = self._last_passed.get(kind, (-_REPEAT_INTERVAL_S, 0))
            if now_s - passed_at_s < _REPEAT_INTERVAL_S:
                self._last_passed[kind] = passed_at_s, count + 1
                return None
            if len(self._last_passed) >= _MAX_KINDS:
                self._last_passed.clear()
            self._last_passed[kind] = now_s, 0
            return count


class LogListener:
    """The listener of one client: passes log lines to structlog, counts errors, and keeps the last error for messages.

    A repeated line is logged at once and then every five seconds. librdkafka logs at level "error" what it retries by
    itself, so these lines are warnings here. Errors that the caller has to handle are raised or returned by the call
    concerned. Thread-safe.

    Attributes:
        last_error: the latest error in words, empty if there was none. That all brokers are down is only the
            consequence of an earlier error, and does not replace it.
        login_refused: whether Kafka refused the client's login and no other error has come since.
        new_leaders: told of lost connections.
    """

    def __init__(self, role: str, cluster: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin without an error.

        Args:
            role: names the client in logs and metrics.
            cluster: the cluster's name, for log lines: one process may have clients of several clusters.
            now_s: the clock for repetitions, in seconds.
        """
        self.last_error = ""
        self.login_refused = False
        self.new_leaders = NewLeaders(now_s)
        self._role = role
        self._logger = structlog.get_logger().bind(cluster=cluster, kafka_client=role)
        self._repetitions = _RepetitionLimit(now_s)

    def log(self, level: int, template: str, *values: object) -> None:
        """Take a log line of librdkafka; the signature is that of :meth:`logging.Logger.log`."""
        text = template % values
        if level < _PYTHON_WARNING_LEVEL:
            self._logger.debug("kafka_client_log", text=text)
            return
        suppressed = self._repetitions.suppressed_before(text)
        if suppressed is None:
            return
        log = self._logger.warning if level >= _PYTHON_ERROR_LEVEL else self._logger.info
        log("kafka_client_log", text=text, **({"suppressed": suppressed} if suppressed else {}))

    def on_error(self, error: KafkaError) -> None:
        """Take an error that belongs to no call, such as a lost connection or a refused login."""
        if error.code() in _UNREACHABLE:
            self.new_leaders.connection_lost()
        # After a refused login, or a host name that is not found, librdkafka also reports that all brokers are down;
        # that would hide the cause.
        if not self.last_error or error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - librdkafka's own
            self.last_error = in_words(error)
            self.login_refused = is_refused_login(error)
        CLIENT_ERRORS.labels(self._role, error.name()).inc()

    def request_error(self, error: KafkaError, what: str, access: Access) -> ControlPlaneError:
        """The error to raise when a request of this client about ``what`` failed; it quotes the last error received."""
        return request_error(error, what, self.last_error, access, login_refused=self.login_refused)

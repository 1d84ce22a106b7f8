"""A librdkafka client that is replaced if it receives nothing although Kafka answers other clients (decision 0014).

The owner of such a client reports what it expects and what arrived, and calls its check regularly. This module does the
rest: it listens to the client's logs and errors, suspects the client, probes Kafka through another one, replaces the
client, and retires the former one.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException

from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_metrics import CLIENTS_REPLACED
from controlplane.adapters.kafka_probe import Place, Probe
from controlplane.adapters.kafka_stall_detector import StallDetector
from controlplane.errors import ConfigurationError

_Client = TypeVar("_Client")


class ReplaceableClient(ABC, Generic[_Client]):
    """Owns one librdkafka client at a time.

    Expectations are reported to :attr:`stalls`; its times are of the same clock as those that the methods take.

    Args:
        cluster: the cluster's name, for log lines.
        role: the client's role in logs and metrics, such as ``reader``.
        make: makes a client that reports to the listener. It is kept, and must not refer to the owner: client and owner
            would keep each other from being freed.

    Raises:
        ConfigurationError: the first client cannot be made with the user's settings.

    Attributes:
        listener: receives logs and errors of this client, of its predecessors, and of its probes.
        stalls: what is expected of the client.
    """

    def __init__(self, cluster: str, role: str, make: Callable[[LogListener], _Client]) -> None:
        """Make the first client; connections are opened when they are needed."""
        self.listener = LogListener(role, cluster)
        self.stalls: StallDetector[Place] = StallDetector()
        self._role = role
        self._make = make
        self._logger = structlog.get_logger().bind(cluster=cluster, kafka_client=role)
        self._lock = threading.RLock()
        self._probe: Probe | None = None
        self._current = make(self.listener)

    @property
    def current(self) -> _Client:
        """The present client, which may be replaced by another one at any time."""
        return self._current

    @property
    def is_suspected(self) -> bool:
        """Whether a probe is under way."""
        return self._probe is not None

    @abstractmethod
    def _start_probe(self, places: AbstractSet[Place]) -> Probe:
        """Ask the leaders of the places through a client made for this."""

    @abstractmethod
    def _retire(self, former: _Client, cause: KafkaError) -> None:
        """Give up a client that was replaced, without waiting; called with the lock held."""

    def _check(self, now_s: float) -> bool:
        """Start a probe if the client stalls, or evaluate a finished one; return whether the client was replaced.

        A client that cannot be replaced, because no other can be made, is kept and checked again.
        """
        with self._lock:
            if self._probe is None:
                overdue = self.stalls.overdue(now_s)
                self._probe = self._start_probe(frozenset(overdue)) if overdue else None
                return False
            outcome = self._probe.outcome
            if outcome is None:
                return False
            self._probe = None
            must_replace = self.stalls.must_replace(
                now_s, leader_answered=outcome.leader_answered, client_answered=outcome.doubted_answered
            )
            cause = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - librdkafka's own codes begin so
            if not must_replace or not self._try_replace(self._current, cause):
                return False
            stalled = self.stalls.replaced(now_s)
        CLIENTS_REPLACED.labels(self._role).inc()
        self._logger.warning(
            "Kafka client replaced: it received nothing, while Kafka answered a new client",
            at=[f"{name}[{number}]" for name, number in sorted(stalled)],
        )
        return True

    def _try_replace(self, former: _Client, cause: KafkaError) -> bool:
        """Like :meth:`_replace`, but keep the former client, which may recover, if no other can be made."""
        try:
            return self._replace(former, cause)
        except (ConfigurationError, KafkaException) as error:
            self._logger.warning("Kafka client kept, because no other one can be made", error=str(error))
            return False

    def _replace(self, former: _Client, cause: KafkaError) -> bool:
        """Put a new client in the former's place; return False if another thread has done so meanwhile.

        Raises:
            ConfigurationError, KafkaException: no new client can be made; the former stays.
        """
        with self._lock:
            if self._current is not former:
                return False
            self._current = self._make(self.listener)
            self._probe = None
            self._retire(former, cause)
            return True

"""How long a leader's transaction may stay open, by the brokers that Kafka shows."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from controlplane.adapters import kafka_admin
from controlplane.adapters.kafka_admin import transaction_timeout_ms


class Brokers:
    """An administrator's connection to so many brokers, whose session lasts so long; None if it may not be read."""

    def __init__(self, count: int, session_ms: str | None) -> None:
        self._count = count
        self._session_ms = session_ms
        self.client = self

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """The brokers alone."""
        del timeout
        return SimpleNamespace(brokers=dict.fromkeys(range(1, self._count + 1)))

    def describe_configs(self, resources: list[object], request_timeout: float) -> dict[object, "Brokers"]:
        """An answer that is still to come."""
        del request_timeout
        return dict.fromkeys(resources, self)

    def result(self, _: float) -> dict[str, SimpleNamespace]:
        """The setting."""
        if self._session_ms is None:
            raise KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))
        return {"broker.session.timeout.ms": SimpleNamespace(value=self._session_ms)}


@pytest.mark.parametrize(
    ("brokers", "session_ms", "timeout_ms"),
    [(1, "9000", 5_000), (3, "9000", 14_000), (3, "3000", 10_000), (2, "30000", 35_000), (3, None, 14_000)],
)
def test_a_transaction_outlasts_the_session_of_a_dead_broker(
    monkeypatch: pytest.MonkeyPatch, brokers: int, session_ms: str | None, timeout_ms: int
) -> None:
    """Until Kafka gives the broker up, a commit has no answer; a healthy leader must not be fenced meanwhile."""
    monkeypatch.setattr(kafka_admin, "KafkaAdmin", lambda *_: Brokers(brokers, session_ms))
    assert transaction_timeout_ms("nowhere", "demo", {}) == timeout_ms

"""How long a leader's transaction may stay open, by the brokers that Kafka shows."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from controlplane.adapters import kafka_transaction_timeout
from controlplane.adapters.kafka_transaction_timeout import ask_transaction_timeout_ms


class Brokers:
    """An administrator's connection to so many brokers, whose session lasts so long; None if it may not be read.

    The log has so many copies; with 0 it is not shown.
    """

    def __init__(self, count: int, session_ms: str | None, copies: int) -> None:
        self._count = count
        self._copies = copies
        self._session_ms = session_ms
        self.client = self

    def list_topics(self, timeout: float) -> SimpleNamespace:
        """The brokers and the log."""
        del timeout
        log = SimpleNamespace(partitions={0: SimpleNamespace(replicas=list(range(1, self._copies + 1)))})
        topics = {"demo.decisions": log} if self._copies else {}
        return SimpleNamespace(brokers=dict.fromkeys(range(1, self._count + 1)), topics=topics, orig_broker_id=1)

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
    ("brokers", "copies", "session_ms", "timeout_ms"),
    [
        (1, 1, "9000", 5_000),
        (1, 0, "9000", 5_000),
        (3, 3, "9000", 14_000),
        (3, 1, "3000", 10_000),
        (2, 0, "30000", 35_000),
        (3, 3, None, 14_000),
    ],
)
def test_a_transaction_outlasts_the_session_of_a_dead_broker(
    monkeypatch: pytest.MonkeyPatch, brokers: int, copies: int, session_ms: str | None, timeout_ms: int
) -> None:
    """Until Kafka gives the broker up, a commit has no answer; a healthy leader must not be fenced meanwhile."""
    monkeypatch.setattr(kafka_transaction_timeout, "KafkaAdmin", lambda *_: Brokers(brokers, session_ms, copies))
    assert ask_transaction_timeout_ms("nowhere", "demo", {}) == timeout_ms


@pytest.mark.parametrize("copies", [2, 3])
def test_brokers_that_are_away_at_the_start_count_by_their_copies(monkeypatch: pytest.MonkeyPatch, copies: int) -> None:
    """They come back and may die later, and the process keeps its limit for as long as it lives."""
    monkeypatch.setattr(kafka_transaction_timeout, "KafkaAdmin", lambda *_: Brokers(1, "9000", copies))
    assert ask_transaction_timeout_ms("nowhere", "demo", {}) == 14_000

"""A probe: which leaders it asks, for how long, and what counts as an answer."""

import threading
from types import SimpleNamespace
from typing import cast

import pytest
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition
from structlog.testing import capture_logs

from controlplane.adapters import kafka_probe
from controlplane.adapters.kafka_probe import Probe, leader_answers
from controlplane.errors import ConfigurationError
from tests.helpers.polling import poll_until

LOGGER = structlog.get_logger(cluster="demo")
_TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - librdkafka's own code


class FakeClient:
    """A client of a cluster whose topics' partitions have these leaders; broker 9 is dead, and -1 is no leader."""

    def __init__(self, **leaders: list[int]) -> None:
        self.leaders = leaders
        self.asked: list[tuple[str, int]] = []
        self.timeouts_s: list[float] = []
        self.is_closed = False

    def list_topics(self, name: str, timeout: float) -> SimpleNamespace:
        """Any broker names the leaders; without a cluster there is no answer."""
        if not self.leaders:
            raise _TIMED_OUT
        partitions = {
            number: SimpleNamespace(leader=leader) for number, leader in enumerate(self.leaders.get(name, []))
        }
        return SimpleNamespace(topics={name: SimpleNamespace(partitions=partitions)})

    def get_watermark_offsets(self, place: KafkaPosition, timeout: float, *, cached: bool) -> tuple[int, int]:
        """The leader itself answers, unless it is dead."""
        assert not cached
        self.asked.append((place.topic, place.partition))
        self.timeouts_s.append(timeout)
        if self.leaders[place.topic][place.partition] == 9:
            raise _TIMED_OUT
        return 0, 0

    def close(self) -> None:
        """No more questions."""
        self.is_closed = True


def answers(client: FakeClient, *places: tuple[str, int], timeout_s: float = 1.0) -> bool:
    """Whether the leader of one of the places answers this client."""
    return leader_answers(cast("Consumer", client), set(places), timeout_s)


def outcome_of(probe: Probe) -> tuple[bool, bool] | None:
    """The outcome, waited for."""
    poll_until(lambda: probe.outcome is not None)
    return probe.outcome


def test_one_leader_that_answers_is_enough() -> None:
    """Dead leaders take no more than their share of the time."""
    client = FakeClient(a=[9, 9, 1, 9])
    assert answers(client, *(("a", number) for number in range(4)), timeout_s=6.0)
    assert 1.0 <= client.timeouts_s[0] <= 1.5


def test_a_partition_without_a_leader_is_not_asked() -> None:
    """The question would wait for an election until the time is over, and the other leaders would not be asked."""
    client = FakeClient(a=[-1, 1], b=[-1])
    assert answers(client, ("a", 0), ("a", 1), ("b", 0))
    assert client.asked == [("a", 1)]
    assert not answers(client, ("b", 0))


def test_metadata_is_no_answer() -> None:
    """Any broker names a dead leader until its death is noticed."""
    assert not answers(FakeClient(a=[9]), ("a", 0))
    assert not answers(FakeClient(), ("a", 0))


def test_any_partition_stands_for_all_of_the_topic() -> None:
    """A producer that knew no partition had not chosen one for its record."""
    client = FakeClient(a=[-1, 1])
    assert answers(client, ("a", -1))
    assert client.asked == [("a", 1)]


def test_only_the_leaders_of_the_places_are_asked() -> None:
    """The answer of another partition's leader says nothing about these."""
    client = FakeClient(a=[1, 9])
    assert not answers(client, ("a", 1))
    assert client.asked == [("a", 1)]


@pytest.mark.parametrize(
    ("client", "doubted", "expected"),
    [
        (FakeClient(a=[1]), FakeClient(a=[1]), (True, True)),
        (FakeClient(a=[1]), FakeClient(a=[-1]), (True, False)),
        (FakeClient(a=[1]), FakeClient(), (True, False)),
        (FakeClient(), FakeClient(a=[1]), (False, False)),
    ],
    ids=["both answered", "doubted knows no leader", "doubted knows no broker", "no leader answers"],
)
def test_the_doubted_producer_is_asked_as_well(
    client: FakeClient, doubted: FakeClient, expected: tuple[bool, bool]
) -> None:
    """A producer that is told a leader has the address of a broker, whatever it waits for."""
    assert outcome_of(Probe(lambda: client, {("a", 0)}, LOGGER, doubted)) == expected  # type: ignore[arg-type,return-value] # a fake
    poll_until(lambda: client.is_closed)
    assert not doubted.is_closed


def test_a_probe_has_no_outcome_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has heartbeats to send meanwhile."""
    may_answer = threading.Event()

    def answers_late(*_: object) -> bool:
        assert may_answer.wait(30.0)
        return True

    monkeypatch.setattr(kafka_probe, "leader_answers", answers_late)
    probe = Probe(FakeClient, {("a", 0)}, LOGGER)  # type: ignore[arg-type] # a fake
    assert probe.outcome is None
    may_answer.set()
    assert outcome_of(probe) == (True, False)


def test_the_outcome_does_not_wait_until_the_probing_client_is_closed() -> None:
    """Closing waits for the resolution of host names."""
    may_close = threading.Event()

    class SlowClient(FakeClient):
        def close(self) -> None:
            assert may_close.wait(30.0)
            super().close()

    client = SlowClient(a=[1])
    assert outcome_of(Probe(lambda: client, {("a", 0)}, LOGGER)) == (True, False)  # type: ignore[arg-type,return-value] # as above
    assert not client.is_closed
    may_close.set()
    poll_until(lambda: client.is_closed)


def test_a_probe_for_which_no_client_can_be_made_is_not_answered() -> None:
    """The suspected client is kept."""

    def make() -> FakeClient:
        raise ConfigurationError("the file is gone")

    with capture_logs() as lines:
        assert outcome_of(Probe(make, {("a", 0)}, LOGGER)) == (False, False)  # type: ignore[arg-type] # as above
    assert [(line["cluster"], line["error"]) for line in lines] == [("demo", "the file is gone")]

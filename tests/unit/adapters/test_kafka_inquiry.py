"""Whether Kafka answers another client: what is asked, of whom, and what an answer is worth."""

import threading
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_inquiry
from controlplane.adapters.kafka_inquiry import Inquiry, gets_an_answer
from controlplane.errors import ConfigurationError
from tests.helpers.polling import poll_until

_SILENCE = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - librdkafka's own code


class Cluster:
    """Topics whose partitions have these leaders, asked by whoever plays a client; broker 9 is dead."""

    def __init__(self, **leaders: list[int]) -> None:
        self.leaders = leaders
        self.asked: list[tuple[str, int]] = []
        self.waited_s: list[float] = []
        self.is_closed = False

    def list_topics(self, name: str, timeout: float) -> SimpleNamespace:
        """Any broker tells who leads; without one there is no answer."""
        if not self.leaders:
            raise _SILENCE
        partitions = {
            number: SimpleNamespace(leader=leader) for number, leader in enumerate(self.leaders.get(name, []))
        }
        return SimpleNamespace(topics={name: SimpleNamespace(partitions=partitions)})

    def get_watermark_offsets(self, place: KafkaPosition, timeout: float, *, cached: bool) -> tuple[int, int]:
        """The leader itself answers, if it lives."""
        assert not cached
        self.asked.append((place.topic, place.partition))
        self.waited_s.append(timeout)
        if self.leaders[place.topic][place.partition] == 9:
            raise _SILENCE
        return 0, 0

    def close(self) -> None:
        """No more questions."""
        self.is_closed = True


def answers(cluster: Cluster, *places: tuple[str, int], timeout_s: float = 1.0) -> bool:
    """Whether a client that asks this cluster is answered about one of the places."""
    return gets_an_answer(cast("Consumer", cluster), set(places), timeout_s)


def ended(inquiry: Inquiry) -> tuple[bool, bool]:
    """What the leader and the doubted client answered, when that is known."""
    poll_until(lambda: inquiry.is_over)
    return inquiry.leader_answered, inquiry.doubted_answered


def test_one_leader_that_answers_is_enough() -> None:
    """Whoever else is dead."""
    cluster = Cluster(a=[9, 9, 1, 9])
    assert answers(cluster, *(("a", number) for number in range(4)), timeout_s=6.0)
    assert 1.0 <= cluster.waited_s[0] <= 1.5, "a silent one takes its share of the time"


def test_nobody_waits_for_a_partition_without_a_leader() -> None:
    """It would take all the time that there is, and the others would not be asked."""
    cluster = Cluster(a=[-1, 1], b=[-1])
    assert answers(cluster, ("a", 0), ("a", 1), ("b", 0))
    assert cluster.asked == [("a", 1)]
    assert not answers(cluster, ("b", 0))


def test_who_leads_a_dead_partition_is_no_answer() -> None:
    """Any broker tells it, for as long as the death is not noticed."""
    assert not answers(Cluster(a=[9]), ("a", 0))
    assert not answers(Cluster(), ("a", 0))


def test_any_partition_stands_for_one_that_was_not_chosen() -> None:
    """A client that knew no partition had not chosen one for what it was to send."""
    cluster = Cluster(a=[-1, 1])
    assert answers(cluster, ("a", -1))
    assert cluster.asked == [("a", 1)]


def test_only_the_places_that_wait_are_asked() -> None:
    """That others are served says nothing of these."""
    cluster = Cluster(a=[1, 9])
    assert not answers(cluster, ("a", 1))
    assert cluster.asked == [("a", 1)]


@pytest.mark.parametrize(
    ("cluster", "doubted", "expected"),
    [
        (Cluster(a=[1]), Cluster(a=[1]), (True, True)),
        (Cluster(a=[1]), Cluster(a=[-1]), (True, False)),
        (Cluster(a=[1]), Cluster(), (True, False)),
        (Cluster(), Cluster(a=[1]), (False, False)),
    ],
    ids=["of both", "none who leads", "no broker", "of nobody"],
)
def test_the_doubted_client_is_asked_beside(cluster: Cluster, doubted: Cluster, expected: tuple[bool, bool]) -> None:
    """A producer that is told who leads has not forgotten where Kafka is, whatever it waits for."""
    assert ended(Inquiry(lambda: cluster, {("a", 0)}, doubted)) == expected  # type: ignore[arg-type,return-value] # play
    poll_until(lambda: cluster.is_closed)
    assert not doubted.is_closed


def test_nobody_waits_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller has heartbeats to send; until the answer is there, it is no."""
    may_answer = threading.Event()

    def answers_late(*_: object) -> bool:
        assert may_answer.wait(30.0)
        return True

    monkeypatch.setattr(kafka_inquiry, "gets_an_answer", answers_late)
    inquiry = Inquiry(Cluster, {("a", 0)})  # type: ignore[arg-type] # plays one
    assert (inquiry.is_over, inquiry.leader_answered) == (False, False)
    may_answer.set()
    assert ended(inquiry) == (True, False)


def test_the_answer_does_not_wait_for_the_end_of_who_asked() -> None:
    """Ending a client waits for hosts whose names are looked for."""
    may_end = threading.Event()

    class Slow(Cluster):
        def close(self) -> None:
            assert may_end.wait(30.0)
            super().close()

    cluster = Slow(a=[1])
    assert ended(Inquiry(lambda: cluster, {("a", 0)})) == (True, False)  # type: ignore[arg-type,return-value] # plays one
    assert not cluster.is_closed
    may_end.set()
    poll_until(lambda: cluster.is_closed)


def test_no_client_to_ask_by_is_no_answer() -> None:
    """The one that there is is kept."""

    def make() -> Cluster:
        raise ConfigurationError("the file is gone")

    assert ended(Inquiry(make, {("a", 0)})) == (False, False)  # type: ignore[arg-type] # as above

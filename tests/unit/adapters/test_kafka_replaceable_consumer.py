"""How a consumer is replaced: what the new one is given, how the former one ends, and when an idle one is served."""

import threading
from functools import partial
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_replaceable_consumer
from controlplane.adapters.kafka_probe import Place, Probe
from controlplane.adapters.kafka_replaceable_consumer import ReplaceableConsumer
from controlplane.adapters.kafka_stall_detector import SECOND_PROBE_AFTER_S, SHORTEST_STALL_LIMIT_S
from tests.helpers.fake_kafka_clients import NOT_MADE, UNANSWERED, over
from tests.helpers.polling import poll_until

PLACE: Place = ("demo.decisions", 0)


class FakeConsumer:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.assigned: list[KafkaPosition] | None = None
        self.polls = 0
        self.closed_in = ""

    def assign(self, positions: list[KafkaPosition]) -> None:
        """Read from there."""
        self.assigned = positions

    def poll(self, timeout: float) -> None:
        """Run callbacks."""
        assert timeout == 0
        self.polls += 1

    def list_topics(self, name: str, timeout: float) -> None:
        """No answer."""
        raise KafkaException(UNANSWERED)

    def close(self) -> None:
        """End."""
        self.closed_in = threading.current_thread().name


def as_consumer(fake: FakeConsumer) -> Consumer:
    """What the owner takes it for."""
    return cast("Consumer", fake)


def _is_closed(fake: FakeConsumer) -> bool:
    return fake.closed_in == "kafka-close"


@pytest.fixture
def made() -> list[FakeConsumer]:
    """The consumers in the order in which they were made."""
    return []


@pytest.fixture
def owner(made: list[FakeConsumer]) -> ReplaceableConsumer:
    """The owner of one of them at a time; three can be made."""

    def make(_: object) -> Consumer:
        if len(made) == 3:
            raise NOT_MADE
        made.append(FakeConsumer())
        return as_consumer(made[-1])

    return ReplaceableConsumer("demo", "reader", make)


def test_a_stalled_consumer_is_replaced_by_one_that_takes_over(
    owner: ReplaceableConsumer, made: list[FakeConsumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probes ask for the places that stall; the former consumer is closed in a thread, which can take seconds."""
    probed = []

    def start_probe(_make: object, places: frozenset[Place], _logger: object) -> Probe:
        probed.append(places)
        return over()

    monkeypatch.setattr(kafka_replaceable_consumer, "Probe", start_probe)
    position = KafkaPosition(*PLACE, 7)
    owner.assign([position])
    owner.stalls.expect(PLACE, 0.0)
    took_over_at_s = []
    for step in range(20):
        now_s = step / 2

        def take_over(now_s: float = now_s) -> None:
            took_over_at_s.append(now_s)
            owner.assign([position])

        owner.check(now_s, take_over)
    assert took_over_at_s == [SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S + 1.0], (
        "one check judges what another began"
    )
    assert probed == [{PLACE}, {PLACE}]
    assert [consumer.assigned for consumer in made] == [[position], [position]]
    poll_until(lambda: made[0].closed_in == "kafka-close")
    assert made[1].closed_in == ""


def test_a_probe_asks_through_a_consumer_of_its_own(owner: ReplaceableConsumer, made: list[FakeConsumer]) -> None:
    """It is made as the others are, and closed; the stalled one is not disturbed."""
    owner.stalls.expect(PLACE, 0.0)
    owner.check(SHORTEST_STALL_LIMIT_S, lambda: None)
    poll_until(lambda: len(made) == 2 and made[1].closed_in == "kafka-probe")
    assert made[0].closed_in == ""
    assert owner.current is as_consumer(made[0])


def test_a_consumer_that_did_not_answer_is_not_asked_again(
    owner: ReplaceableConsumer, made: list[FakeConsumer]
) -> None:
    """It is kept only where no other can be made."""
    for number in range(2):
        owner.replace_unanswered(as_consumer(made[number]), UNANSWERED)
        assert owner.current is as_consumer(made[number + 1])
        poll_until(partial(_is_closed, made[number]))
    owner.replace_unanswered(as_consumer(made[2]), UNANSWERED)
    assert owner.current is as_consumer(made[2])
    assert made[2].closed_in == ""


def test_only_an_idle_consumer_is_served(owner: ReplaceableConsumer, made: list[FakeConsumer]) -> None:
    """Serving one that reads would take a record away from its owner; a halted one has none to hand over."""

    def served() -> bool:
        before = made[0].polls
        owner.serve_idle()
        return made[0].polls > before

    assert served()
    owner.assign([KafkaPosition(*PLACE, 0)])
    assert not served()
    owner.halt()
    assert served()
    owner.assign([KafkaPosition(*PLACE, 0)])
    assert not served()
    owner.assign([])
    assert served()

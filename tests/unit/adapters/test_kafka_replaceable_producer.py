"""When a producer is replaced, and that each of its records is reported once all the same."""

import threading
import weakref
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from structlog.testing import capture_logs

from controlplane.adapters import kafka_replaceable_producer
from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_probe import ANY_PARTITION, Place, Probe
from controlplane.adapters.kafka_replaceable_producer import ReplaceableProducer
from controlplane.adapters.kafka_stall_detector import LONGEST_STALL_LIMIT_S, SHORTEST_STALL_LIMIT_S
from tests.helpers.fake_kafka_clients import FATAL, PURGED, TIMED_OUT, UNANSWERED, FakeProducer, ProducerFactory, over
from tests.helpers.polling import poll_until

PLACE: Place = ("demo.heartbeats", 0)
MESSAGE_TIMEOUT_S = 2.5


class Writer:
    """Produces records through a replaceable producer, under a clock that the test moves.

    Attributes:
        reported: why each record was given up, None for an acknowledged one.
    """

    def __init__(self, make: ProducerFactory) -> None:
        self.now_s = 1_000.0
        self.factory = make
        self.reported: list[KafkaError | None] = []
        self.owner = ReplaceableProducer(
            "demo", "events", make, _no_consumer, message_timeout_s=MESSAGE_TIMEOUT_S, now_s=self._tick
        )

    def produce(self, place: Place = PLACE) -> None:
        """Produce one record."""
        self.owner.produce(place, b"n1", b"beat", self._report)

    def beat(self, seconds: int = 1) -> None:
        """Produce and serve once a second."""
        for _ in range(seconds):
            self.produce()
            self.now_s += 1.0
            self.owner.serve(0)

    def beat_until_replaced(self) -> float:
        """Beat until there is one producer more; returns how many seconds that took."""
        made, began_s = len(self.factory.made), self.now_s
        while len(self.factory.made) == made:
            assert self.now_s < began_s + 60, "not replaced within 60 s"
            self.beat()
        return self.now_s - began_s

    def _tick(self) -> float:
        self.now_s += 0.001
        return self.now_s

    def _report(self, error: KafkaError | None, _message: Message) -> None:
        self.reported.append(None if error is None else self.owner.cause_of(error))


def _no_consumer(_: LogListener) -> Consumer:
    raise AssertionError("the probes of this test need none")


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[Place]]:
    """Every probe is answered; the places of each."""
    probed: list[frozenset[Place]] = []

    def start_probe(_make: object, places: frozenset[Place], _logger: object, doubted: FakeProducer) -> Probe:
        assert isinstance(doubted, FakeProducer), "the producer is asked as well"
        probed.append(places)
        return over()

    monkeypatch.setattr(kafka_replaceable_producer, "Probe", start_probe)
    return probed


def test_a_producer_without_acknowledgements_is_replaced(answered: list[frozenset[Place]]) -> None:
    """Each record that it still held is reported as well, as given up for want of acknowledgements."""
    writer = Writer(ProducerFactory(FakeProducer(kept=1), FakeProducer(None)))
    writer.beat_until_replaced()
    assert answered == [{PLACE}] * 2
    told = len(writer.reported)
    writer.owner.serve(0)
    assert (len(writer.reported), writer.owner.unreported) == (told, 1), "the last callback has not come yet"
    writer.owner.serve(0)
    assert (len(writer.reported), writer.owner.unreported) == (told + 1, 0)
    assert {str(error) for error in writer.reported} == {str(TIMED_OUT)}
    writer.beat()
    assert writer.reported[-1] is None


def test_an_acknowledgement_clears_the_producer(answered: list[frozenset[Place]]) -> None:
    """Records that are given up among acknowledged ones say that Kafka is slow."""
    producer = FakeProducer()
    writer = Writer(ProducerFactory(producer))
    for second in range(60):
        producer.outcome = None if second % 3 == 0 else TIMED_OUT
        writer.beat()
    assert answered == []


def test_an_acknowledgement_clears_records_that_had_no_partition_yet(answered: list[frozenset[Place]]) -> None:
    """A producer that knew no partition had not chosen one."""
    producer = FakeProducer()
    writer = Writer(ProducerFactory(producer))
    unplaced = cast("Message", type("Unplaced", (), {"partition": lambda _: None})())
    writer.produce()
    producer.queued.pop()(TIMED_OUT, unplaced)
    assert writer.owner.stalls.is_expected((PLACE[0], ANY_PARTITION))
    producer.outcome = None
    writer.beat()
    assert not writer.owner.stalls.is_expected((PLACE[0], ANY_PARTITION))


def test_a_producer_is_not_suspected_while_it_gives_nothing_up(answered: list[frozenset[Place]]) -> None:
    """One record that was given up long ago says nothing about the next."""
    producer = FakeProducer()
    writer = Writer(ProducerFactory(producer))
    writer.beat()
    producer.kept = 100
    writer.beat(60)
    assert answered == []


def test_only_records_without_an_acknowledgement_in_time_speak_against_a_producer(
    answered: list[frozenset[Place]],
) -> None:
    """A record that Kafka refuses was answered; one that was purged was not waited for."""
    producer = FakeProducer()
    writer = Writer(ProducerFactory(producer))
    for error in (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), PURGED):
        producer.outcome = error
        writer.beat(30)
    assert answered == []


def test_an_acknowledgement_is_expected_since_the_record_was_produced(answered: list[frozenset[Place]]) -> None:
    """Not since it was given up: a longer time limit of messages would delay the replacement by as much."""
    writer = Writer(ProducerFactory(FakeProducer()))
    writer.produce()
    writer.now_s += SHORTEST_STALL_LIMIT_S
    writer.owner.serve(0)
    assert answered == [{PLACE}]
    assert writer.owner.is_suspected
    writer.owner.serve(0)
    assert not writer.owner.is_suspected, "a probe that is over is judged, whether more was given up or not"


def test_a_place_to_which_nothing_was_sent_lately_is_forgotten(answered: list[frozenset[Place]]) -> None:
    """An acknowledgement from there is not to be had, whether the producer is broken or not."""
    writer = Writer(ProducerFactory(FakeProducer()))
    writer.produce(("demo.intents", 0))
    writer.owner.serve(0)
    assert writer.owner.stalls.is_expected(("demo.intents", 0))
    writer.now_s += LONGEST_STALL_LIMIT_S + MESSAGE_TIMEOUT_S
    writer.beat()
    assert not writer.owner.stalls.is_expected(("demo.intents", 0))
    assert answered == []


def test_a_writer_that_only_drains_is_checked_as_well(answered: list[frozenset[Place]]) -> None:
    """A writer of snapshots sends seldom, and then waits for the delivery."""
    writer = Writer(ProducerFactory())
    for _ in range(6):
        writer.produce()
        writer.now_s += 30.0
        writer.owner.drain(0.1)
    assert len(writer.factory.made) == 2


def test_a_retired_producer_is_freed_in_a_thread(answered: list[frozenset[Place]]) -> None:
    """Freeing joins librdkafka's threads, which takes seconds while the client resolves a host name."""
    writer = Writer(ProducerFactory())
    writer.beat_until_replaced()
    freed_in: list[str] = []
    weakref.finalize(writer.factory.made.pop(0), lambda: freed_in.append(threading.current_thread().name))

    def is_freed() -> bool:
        writer.owner.serve(0)
        return bool(freed_in)

    poll_until(is_freed)
    assert freed_in == ["kafka-close"]


def test_a_stalled_producer_is_kept_where_no_other_can_be_made(answered: list[frozenset[Place]]) -> None:
    """Serving raises nothing; it is tried again."""
    writer = Writer(ProducerFactory())
    writer.factory.limit = 1
    writer.beat(30)
    writer.owner.replace_unanswered(writer.owner.current, UNANSWERED)
    writer.factory.limit = 2
    writer.beat_until_replaced()


@pytest.mark.parametrize(("unreported", "producers"), [(0, 2), (1, 1)])
def test_only_a_producer_without_records_is_replaced_for_a_question(unreported: int, producers: int) -> None:
    """Records show by themselves whether the producer is broken, and would be given up; log lines are none."""
    writer = Writer(ProducerFactory(FakeProducer(None)))
    asked = writer.factory.made[0]
    with pytest.raises(KafkaException):
        asked.list_topics("demo.heartbeats", 0)
    for _ in range(unreported):
        writer.produce()
    writer.owner.replace_unanswered(writer.owner.current, UNANSWERED)
    assert len(writer.factory.made) == producers


def test_a_producer_with_a_fatal_error_is_replaced_at_once_and_the_new_one_takes_the_record() -> None:
    """Its former records are reported with the fatal error as the cause."""
    broken, new = FakeProducer(kept=1), FakeProducer(None)
    writer = Writer(ProducerFactory(broken, new))
    writer.produce()
    broken.fails_with = FATAL
    with capture_logs() as lines:
        writer.produce()
    assert [line["event"] for line in lines] == ["Kafka producer replaced after a fatal error"]
    assert new.produced == [("demo.heartbeats", b"beat", b"n1", 0)]
    assert writer.owner.unreported == 2
    broken.fails_with = None
    assert writer.owner.drain(10.0) == 0
    assert sorted(map(str, writer.reported)) == sorted(["None", str(FATAL)])


def test_a_fatal_error_while_serving_replaces_the_producer() -> None:
    """It is raised there as well as by the next record; another error is not swallowed."""
    broken, new = FakeProducer(), FakeProducer()
    writer = Writer(ProducerFactory(broken, new))
    broken.fails_with = FATAL
    writer.owner.serve(0)
    assert writer.owner.current is cast("object", new)
    new.fails_with = UNANSWERED
    with pytest.raises(KafkaException):
        writer.owner.serve(0)
    assert len(writer.factory.made) == 2


def test_nothing_is_expected_of_a_producer_that_follows_a_broken_one() -> None:
    """A fatal error is no stall: the new producer has the shortest limit, and all its time."""
    broken = FakeProducer()
    writer = Writer(ProducerFactory(broken))
    writer.owner.stalls.stall_limit_s = LONGEST_STALL_LIMIT_S
    writer.beat()
    assert writer.owner.stalls.is_expected(PLACE)
    broken.fails_with = FATAL
    writer.owner.serve(0)
    assert not writer.owner.stalls.is_expected(PLACE)
    assert writer.owner.stalls.stall_limit_s == SHORTEST_STALL_LIMIT_S


def test_closing_reports_what_it_gives_up() -> None:
    """For the reason that the writer ends, also after an earlier producer was replaced."""
    broken = FakeProducer()
    writer = Writer(ProducerFactory(broken, FakeProducer(kept=1)))
    broken.fails_with = FATAL
    writer.produce()
    writer.owner.close()
    assert writer.reported == [PURGED]
    assert writer.owner.unreported == 0


def test_a_report_that_fails_counts_as_run() -> None:
    """The owner's callback may raise; the record must not count as unreported for ever."""
    writer = Writer(ProducerFactory(FakeProducer(None)))

    def fail(*_: object) -> None:
        raise ValueError("the owner's mistake")

    writer.owner.produce(PLACE, b"n1", None, fail)
    with pytest.raises(ValueError, match="mistake"):
        writer.owner.serve(0)
    assert writer.owner.unreported == 0


class AskingProducer(FakeProducer):
    """A producer that keeps what it was asked about."""

    def __init__(self) -> None:
        """Its records wait."""
        super().__init__(None, kept=1_000)
        self.asked: list[str] = []

    def list_topics(self, name: str, timeout: float) -> SimpleNamespace:
        """No answer yet."""
        self.asked.append(name)
        return super().list_topics(name, timeout)


def test_a_producer_whose_records_wait_asks_for_new_leaders_when_a_connection_is_lost() -> None:
    """One without records has nothing to send there."""
    producer = AskingProducer()
    writer = Writer(ProducerFactory(producer))
    writer.owner.listener.on_error(UNANSWERED)
    writer.owner.serve(0)
    assert producer.asked == []
    writer.produce()
    writer.owner.serve(0)
    assert producer.asked == [PLACE[0]]

"""What a writer of single records raises and reports, with producers that need no broker."""

import gc
import weakref
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from controlplane.adapters import kafka_events
from controlplane.adapters.kafka_events import KafkaEventWriter
from controlplane.config import HEARTBEATS, ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, ControlPlaneError, LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord
from tests.helpers.fake_kafka_clients import FATAL, TIMED_OUT, UNANSWERED, FakeProducer

BEAT = OutgoingRecord(HEARTBEATS, b"n1", b"beat", 0)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeProducer]:
    """The producers in the order in which they were made."""
    made: list[FakeProducer] = []

    def make(_settings: dict[str, object]) -> FakeProducer:
        made.append(FakeProducer())
        return made[-1]

    monkeypatch.setattr(kafka_events, "Producer", make)
    return made


@pytest.fixture
def writer(made: list[FakeProducer]) -> KafkaEventWriter:
    """A writer with one of them."""
    return KafkaEventWriter(ClusterConfig("demo"), KafkaConfig("localhost:1"))


def delivery_of(writer: KafkaEventWriter, record: OutgoingRecord = BEAT) -> Delivery:
    """Send a record; what became of it."""
    told: list[Delivery] = []
    writer.send(record, told.append)
    awaited = writer.awaits_delivery
    assert awaited
    assert told == []
    assert writer.flush(10_000) == 0
    assert not writer.awaits_delivery
    return told[0]


@pytest.mark.parametrize(("partition", "in_kafka"), [(0, 0), (None, -1)])
def test_an_acknowledged_record_is_reported_with_its_place(
    writer: KafkaEventWriter, made: list[FakeProducer], partition: int | None, in_kafka: int
) -> None:
    """The topic as the caller named it; without a partition the key chooses one."""
    made[0].outcome = None
    delivery = delivery_of(writer, BEAT._replace(partition=partition))
    assert delivery == Delivery(HEARTBEATS, 0, 0, 1_000, None)
    assert made[0].produced == [("demo.heartbeats", b"beat", b"n1", in_kafka)]


def test_a_record_that_is_given_up_is_reported_with_the_reason(writer: KafkaEventWriter) -> None:
    """It has no offset and no time."""
    reason = "Local: Message timed out (_MSG_TIMED_OUT)"
    assert delivery_of(writer) == Delivery(HEARTBEATS, 0, -1, -1, reason)


def test_a_record_that_is_not_allowed_is_reported_with_the_right_that_lacks(
    writer: KafkaEventWriter, made: list[FakeProducer]
) -> None:
    """Sending it again does not help."""
    made[0].outcome = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    delivery = delivery_of(writer)
    assert delivery.denied
    assert "does not allow User:ANONYMOUS to write topic demo.heartbeats" in (delivery.error or "")


def test_a_record_of_a_replaced_producer_is_reported_with_the_reason_of_the_replacement(
    writer: KafkaEventWriter, made: list[FakeProducer]
) -> None:
    """That we purged it ourselves says nothing."""
    made[0].kept = 1
    told: list[Delivery] = []
    writer.send(BEAT, told.append)
    made[0].fails_with = FATAL
    writer.poll(0)
    made[0].fails_with = None
    writer.flush(10_000)
    assert [delivery.error for delivery in told] == ["lost step (_FATAL)"]


def test_a_delivery_without_a_partition_is_reported_all_the_same(
    writer: KafkaEventWriter, made: list[FakeProducer]
) -> None:
    """A producer that knew no partition had not chosen one."""
    told: list[Delivery] = []
    writer.send(BEAT._replace(partition=None), told.append)
    unplaced = type("Unplaced", (), {"partition": lambda _: None, "offset": lambda _: None})()
    made[0].queued.pop()(TIMED_OUT, cast("Message", unplaced))
    assert (told[0].partition, told[0].offset) == (-1, -1)


@pytest.mark.parametrize(
    ("raised", "expected", "said"),
    [
        (BufferError("full"), LogUnavailableError, "queue of records to send to Kafka is full, with 0 records"),
        (KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)), ConfigurationError, "key b'n1' as too large"),
        (KafkaException(UNANSWERED), LogUnavailableError, "no usable answer from Kafka about demo.heartbeats"),
    ],
)
def test_a_record_that_is_not_taken_raises(
    writer: KafkaEventWriter,
    made: list[FakeProducer],
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    expected: type[ControlPlaneError],
    said: str,
) -> None:
    """It counts as nothing that a delivery follows for."""

    def refuse(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(made[0], "produce", refuse)
    with pytest.raises(expected, match=said):
        writer.send(BEAT)
    assert not writer.awaits_delivery


def test_a_producer_that_did_not_answer_a_question_is_not_asked_again(
    writer: KafkaEventWriter, made: list[FakeProducer]
) -> None:
    """With nothing to send, nothing else would show that it lost the address of every broker."""
    for asked in (1, 2):
        with pytest.raises(LogUnavailableError, match=r"topic demo\.heartbeats"):
            writer.partition_count(HEARTBEATS)
        assert len(made) == asked + 1


def test_a_writer_that_is_dropped_without_closing_frees_its_producer_at_once(made: list[FakeProducer]) -> None:
    """It would hold its connections until the garbage collector runs."""
    gc.disable()
    try:
        writer = KafkaEventWriter(ClusterConfig("demo"), KafkaConfig("localhost:1"))
        delivery_of(writer)
        freed = weakref.ref(made.pop())
        del writer
        assert freed() is None
    finally:
        gc.enable()

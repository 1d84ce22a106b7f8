"""What a reader expects of its consumer, and which of its consumers it serves and asks, without a broker."""

import gc
import weakref
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_reader, kafka_replaceable_consumer
from controlplane.adapters.kafka_probe import Probe
from controlplane.adapters.kafka_queries import KafkaQueries
from controlplane.adapters.kafka_reader import KafkaLogReader
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import ConfigurationError, LogContinuityError, LogUnavailableError, PrerequisiteError
from tests.helpers.fake_kafka_clients import UNANSWERED, over

NOWHERE = "127.0.0.1:1"
NAME = "test.decisions"
FIRST, SECOND = (TopicPartition("decisions", number) for number in range(2))


class FakeBroker:
    """Makes the consumers of a reader; each poll takes its timeout, and brings the next of ``messages``.

    Attributes:
        assigned: what was assigned, as (seconds since the start, positions), in order.
        probe: every probe from now on; it was answered at once.
        asked: the topics that were asked about.
        high_watermark: of each partition.
    """

    high_watermark = 1_000

    def __init__(self) -> None:
        self.now_s = 0.0
        self.messages: list[Message] = []
        self.assigned: list[tuple[float, list[KafkaPosition]]] = []
        self.probe = over()
        self.asked: list[str] = []

    def __call__(self, _settings: dict[str, object]) -> "FakeBroker":
        """Make a consumer."""
        return self

    def assign(self, positions: list[KafkaPosition]) -> None:
        """Read from there."""
        self.assigned.append((self.now_s, positions))

    def poll(self, timeout: float) -> Message | None:
        """One message, or none."""
        if self.messages:
            return self.messages.pop(0)
        self.now_s += timeout
        return None

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """The messages that are there."""
        assert timeout == 0
        found, self.messages = self.messages[:num_messages], self.messages[num_messages:]
        return found

    def get_watermark_offsets(self, place: KafkaPosition, cached: bool) -> tuple[int, int]:
        """The marks of the last fetch, whose end is far away unless the test says otherwise."""
        assert cached
        return 0, self.high_watermark

    def list_topics(self, name: str, timeout: float) -> None:
        """No answer."""
        self.asked.append(name)
        raise KafkaException(UNANSWERED)

    def close(self) -> None:
        """End."""

    def offsets(self) -> list[list[int]]:
        """The offsets of each assignment."""
        return [[position.offset for position in positions] for _, positions in self.assigned]


def record(partition: int, offset: int) -> Message:
    """A message that carries a record."""
    return Message(NAME, partition, offset, b"n", b"value", timestamp=(2, 1_000))


def end(partition: int, offset: int) -> Message:
    """A message that reports the end of a partition."""
    error = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    return Message(NAME, partition, offset, error=error)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    """Where the reader's consumers come from."""
    broker = FakeBroker()
    monkeypatch.setattr(kafka_reader, "Consumer", broker)
    monkeypatch.setattr(kafka_reader, "time", SimpleNamespace(monotonic=lambda: broker.now_s))

    monkeypatch.setattr(kafka_replaceable_consumer, "Probe", lambda *_: broker.probe)
    return broker


def poll_for(reader: KafkaLogReader, broker: FakeBroker, seconds: float) -> None:
    """Poll every 100 ms."""
    until_s = broker.now_s + seconds
    while broker.now_s < until_s:
        reader.poll(1, 100)


def test_a_new_consumer_reads_on_behind_what_was_read(broker: FakeBroker) -> None:
    """Nothing is read twice, and nothing left out."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7, SECOND: 3})
    broker.messages = [record(0, 7), record(0, 9), end(1, 3)]
    poll_for(reader, broker, 6.0)
    assert broker.offsets() == [[7, 3], [10, 3]]
    assert 5.0 <= broker.assigned[1][0] <= 5.5, "the next record or the end of the first partition did not come"


def test_a_reader_asks_for_new_leaders_when_a_connection_is_lost(broker: FakeBroker) -> None:
    """It may have been that of a partition's leader, which tells nothing any more."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7})
    poll_for(reader, broker, 1.0)
    assert broker.asked == []
    reader._consumer.listener.on_error(UNANSWERED)  # noqa: SLF001 - librdkafka calls it
    poll_for(reader, broker, 1.0)
    assert broker.asked[0] == NAME


@pytest.mark.parametrize(
    "failure",
    [
        LogUnavailableError("no answer"),
        ConfigurationError("a right was taken away"),
        PrerequisiteError("the broker does not know the topic"),
        KafkaException(UNANSWERED),
    ],
)
def test_records_beside_an_offset_that_is_out_of_range_are_not_lost(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """Whatever becomes of the question where the other partition begins: the position has passed the records."""

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(KafkaQueries, "start_offsets", fail)
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7, SECOND: 3})
    gone = KafkaError(KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - as above
    broker.messages = [record(0, 7), Message(NAME, 1, 3, error=gone), record(0, 8)]
    assert [each.offset for each in reader.poll(10, 100).records] == [7, 8]
    poll_for(reader, broker, 2.0)
    assert broker.offsets() == [[7, 3], [9, 3]], "the other partition is asked for again, with a new consumer"


def test_a_reader_at_every_end_asks_for_the_ends_again(broker: FakeBroker) -> None:
    """Every 10 s; a consumer that does not report them then is replaced."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7})
    for _ in range(3):
        broker.messages = [end(0, 7)]
        poll_for(reader, broker, 10.0)
    assert [round(at_s) for at_s, _ in broker.assigned] == [0, 10, 20, 30]
    poll_for(reader, broker, 5.5)
    assert [round(at_s) for at_s, _ in broker.assigned][4:] == [35]


def test_a_suspected_consumer_is_not_assigned_anew(broker: FakeBroker) -> None:
    """Its fetches would begin again while the probe decides about it."""
    broker.probe = cast("Probe", SimpleNamespace(outcome=None))
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7, SECOND: 3})
    broker.messages = [end(1, 3)]
    poll_for(reader, broker, 15.0)
    assert len(broker.assigned) == 1


def test_a_partition_that_is_not_read_any_more_is_not_expected(broker: FakeBroker) -> None:
    """The consumer is not replaced for it, and the other partition waits from its own assignment on."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7})
    poll_for(reader, broker, 4.5)
    reader.assign({SECOND: 0})
    poll_for(reader, broker, 4.5)
    assert broker.offsets() == [[7], [0]]


def test_time_that_the_caller_spends_elsewhere_is_no_waiting(broker: FakeBroker) -> None:
    """A process that was stopped for a minute has given its consumer no time to receive anything."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
    reader.assign({FIRST: 7})
    poll_for(reader, broker, 1.0)
    broker.now_s += 60.0
    poll_for(reader, broker, 2.5)
    assert broker.offsets() == [[7]]


def test_a_reader_that_is_dropped_without_closing_is_freed_at_once(broker: FakeBroker) -> None:
    """Its consumers must not refer to it: they would hold their connections until the garbage collector runs."""
    gc.disable()
    try:
        reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE))
        reader.assign({FIRST: 7})
        reader.poll(1, 0)
        freed = weakref.ref(reader)
        del reader
        assert freed() is None
    finally:
        gc.enable()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> set[Consumer]:
    """The real consumers that were polled."""
    polled: set[Consumer] = set()

    class Watched(Consumer):
        def poll(self, timeout: float = -1) -> Message | None:
            polled.add(self)
            return super().poll(timeout)

    monkeypatch.setattr(kafka_reader, "Consumer", Watched)
    return polled


def new_reader() -> KafkaLogReader:
    """A reader that gives up soon."""
    return KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE), request_timeout_ms=100)


def test_every_consumer_is_served_while_the_broker_is_away(
    served: set[Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log lines and errors wait in a queue of each client: without bound, and closing takes their number's square."""
    reader = new_reader()
    reader.assign({FIRST: 0})
    with monkeypatch.context() as answered:
        answer = SimpleNamespace(topics={NAME: SimpleNamespace(error=None, partitions={})})
        answered.setattr("controlplane.adapters.kafka_reader.Consumer.list_topics", lambda *_, **__: answer)
        assert reader.partition_count("decisions") == 0
    served.clear()
    assert not reader.poll(1, 0).records
    assert len(served) == 2, "the one that reads, and the one that is asked"
    reader.close()


@pytest.mark.parametrize("reads", [True, False])
def test_a_consumer_that_did_not_answer_is_not_asked_again(served: set[Consumer], *, reads: bool) -> None:
    """It may have lost the address of every broker."""
    reader = new_reader()
    if reads:
        reader.assign({FIRST: 0})
    for _ in range(3):
        with pytest.raises(LogUnavailableError):
            reader.partition_count("decisions")
    assert len(served) >= 3
    served.clear()
    reader.poll(1, 0)
    assert len(served) == 1, "the others are closed"
    reader.close()


def test_the_reading_consumer_is_served_by_questions_while_it_brings_no_records(served: set[Consumer]) -> None:
    """A reader that has nothing to read, or cannot read on, asks where to begin for as long as the broker is away."""
    reader = new_reader()

    def served_while_asking() -> int:
        served.clear()
        with pytest.raises(LogUnavailableError):
            reader.start_offsets("decisions")
        return len(served)

    reader.assign({FIRST: 0})
    assert served_while_asking() == 1, "serving the one that reads would take a record away"
    reader.assign({})
    assert served_while_asking() == 2
    reader.assign({FIRST: 0})
    assert served_while_asking() == 1
    reader.close()


def test_a_reader_that_cannot_read_on_serves_its_consumer_while_it_asks(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no more records, so that serving loses none."""
    reader = new_reader()
    reader.assign({FIRST: 0})
    gone = KafkaError(KafkaError._LOG_TRUNCATION)  # noqa: SLF001 - as above
    broker.messages = [Message(NAME, 0, 0, error=gone)]
    with pytest.raises(LogContinuityError):
        reader.poll(1, 0)
    # The consumer that is asked from now on.
    monkeypatch.setattr(kafka_reader, "Consumer", FakeBroker())
    broker.messages = [record(0, 0)]
    with pytest.raises(LogUnavailableError):
        reader.start_offsets("decisions")
    assert broker.messages == []

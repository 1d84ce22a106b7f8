"""A reader whose position a broker does not have: the broker may have lost the partition, or the log its end."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_reader
from controlplane.adapters.kafka_out_of_range import LIMIT_S, OutOfRangeRetries
from controlplane.adapters.kafka_queries import KafkaQueries
from controlplane.adapters.kafka_reader import KafkaLogReader
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError

NAME = "test.decisions"
PLACE = TopicPartition("decisions", 0)
POSITION = 7
OUT_OF_RANGE = KafkaError(KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - librdkafka's own codes begin so
TRUNCATED = KafkaError(
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - as above
    "Partition log truncation detected at offset 7 (leader epoch 2): broker end offset is 5 (leader epoch 1)",
)
"""As librdkafka 2.16 tells it."""


class Brokers:
    """Makes consumers, of which the first ones ask a broker that does not have the position.

    Attributes:
        outdated: how many consumers ask that broker.
        error: how it answers them.
        assigned: the offsets that were assigned, by consumer.
        now_s: advanced by each poll without a message.
    """

    def __init__(self, outdated: int) -> None:
        """Without a consumer."""
        self.outdated = outdated
        self.error = OUT_OF_RANGE
        self.assigned: list[list[int]] = []
        self.now_s = 0.0

    def __call__(self, _settings: dict[str, object]) -> "OneConsumer":
        """Make a consumer."""
        self.assigned.append([])
        return OneConsumer(self, len(self.assigned) - 1)


class OneConsumer:
    """Gets one message for each assignment: the record at the position, or that it is out of range."""

    def __init__(self, brokers: Brokers, number: int) -> None:
        """Of these brokers."""
        self._brokers = brokers
        self._number = number
        self._messages: list[Message] = []

    def assign(self, positions: list[KafkaPosition]) -> None:
        """Read from there."""
        (position,) = positions
        self._brokers.assigned[self._number].append(position.offset)
        is_outdated = self._number < self._brokers.outdated
        self._messages = [
            Message(NAME, 0, POSITION, error=self._brokers.error)
            if is_outdated
            else Message(NAME, 0, position.offset, b"key", b"value", timestamp=(2, 1_000))
        ]

    def poll(self, timeout: float) -> Message | None:
        """The message, or time passes."""
        if self._messages:
            return self._messages.pop()
        self._brokers.now_s += timeout
        return None

    def get_watermark_offsets(self, place: KafkaPosition, cached: bool) -> tuple[int, int]:
        """Those of the last fetch."""
        assert cached
        return 0, place.offset + 1

    def close(self) -> None:
        """End."""


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int | None], tuple[KafkaLogReader, Brokers]]:
    """Makes a reader at the position; its first consumers ask an outdated broker, and the topic begins somewhere."""

    def begin(outdated: int, start: int | None) -> tuple[KafkaLogReader, Brokers]:
        brokers = Brokers(outdated)

        def start_offsets(_self: KafkaQueries, _topic: str, *, only_answering: bool) -> dict[TopicPartition, int]:
            assert only_answering
            if start is None:
                raise LogUnavailableError("no answer")
            return {PLACE: start}

        monkeypatch.setattr(kafka_reader, "Consumer", brokers)
        monkeypatch.setattr(kafka_reader, "time", SimpleNamespace(monotonic=lambda: brokers.now_s))
        monkeypatch.setattr(KafkaQueries, "start_offsets", start_offsets)
        reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig("127.0.0.1:1"))
        reader.assign({PLACE: POSITION})
        return reader, brokers

    return begin


def offsets_read(reader: KafkaLogReader, brokers: Brokers, seconds: float) -> list[int]:
    """What comes within this time, or until something comes."""
    until_s = brokers.now_s + seconds
    while brokers.now_s < until_s:
        records = reader.poll(1, 100).records
        if records:
            return [record.offset for record in records]
    return []


@pytest.mark.parametrize("start", [0, POSITION, None])
def test_a_broker_that_has_lost_its_partition_ends_no_reader(
    reading: Callable[[int, int | None], tuple[KafkaLogReader, Brokers]], start: int | None
) -> None:
    """A new client is told of the present leader, and goes on at the same offset."""
    reader, brokers = reading(3, start)
    assert offsets_read(reader, brokers, 10) == [POSITION]
    assert brokers.assigned == [[POSITION]] * 4
    assert 3 <= brokers.now_s < 4


def test_a_position_that_no_broker_has_is_told_after_a_while(
    reading: Callable[[int, int | None], tuple[KafkaLogReader, Brokers]],
) -> None:
    """The log has lost its end, or was made again: to wait on would hide it."""
    reader, brokers = reading(100, 0)
    assert offsets_read(reader, brokers, LIMIT_S - 0.5) == []
    with pytest.raises(LogContinuityError, match=rf"test\.decisions\[0\]@{POSITION}"):
        offsets_read(reader, brokers, 3)
    with pytest.raises(LogContinuityError):
        reader.poll(1, 0)


def test_deleted_records_are_told_at_once(
    reading: Callable[[int, int | None], tuple[KafkaLogReader, Brokers]],
) -> None:
    """They do not come back."""
    reader, brokers = reading(100, POSITION + 1)
    with pytest.raises(LogContinuityError):
        reader.poll(1, 0)
    assert brokers.now_s == 0


def test_a_log_that_its_leader_calls_truncated_is_told_at_once(
    reading: Callable[[int, int | None], tuple[KafkaLogReader, Brokers]],
) -> None:
    """No other broker has the records. Barriers of new leaders would fill the hole while the reader asks again."""
    reader, brokers = reading(100, 0)
    brokers.error = TRUNCATED
    reader.assign({PLACE: POSITION})
    with pytest.raises(LogContinuityError, match="truncation detected"):
        reader.poll(1, 0)
    assert brokers.now_s == 0


def test_an_offset_that_is_lacking_again_is_asked_for_as_long_as_the_first_time() -> None:
    """What was read between the two shows that nothing was lost; no client is replaced for what is over."""
    doubts = OutOfRangeRetries()
    assert doubts.may_go_on(PLACE, OUT_OF_RANGE, 0)
    doubts.settled(PLACE)
    assert doubts.cause_to_replace(LIMIT_S) is None
    assert doubts.may_go_on(PLACE, OUT_OF_RANGE, LIMIT_S)
    assert not doubts.may_go_on(PLACE, OUT_OF_RANGE, 2 * LIMIT_S)

"""How a batch of messages becomes records, ends and errors, in the orders that a broker brings about only by chance."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_reader
from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.adapters.kafka_queries import KafkaQueries
from controlplane.config import HEARTBEATS, ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError
from controlplane.ports import PartitionEnd, PolledBatch

NAME = f"demo.{HEARTBEATS}"
PLACES = [TopicPartition(HEARTBEATS, partition) for partition in range(2)]


def record(partition: int, offset: int) -> Message:
    """A message that carries a record."""
    return Message(NAME, partition, offset, b"n", b"%d" % offset, timestamp=(2, 1_000 + offset))


def end(partition: int, offset: int) -> Message:
    """A message that says that a partition's end was reached."""
    error = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    return Message(NAME, partition, offset, error=error)


def trouble(partition: int, offset: int, code: int) -> Message:
    """A message that carries an error."""
    return Message(NAME, partition, offset, error=KafkaError(code))


class ScriptedConsumer:
    """A consumer that gives out one list of messages a poll.

    Attributes:
        kept_from: the first offset that Kafka keeps of each partition.
        high_watermark: of each partition, as the last reply to a fetch told it; -1 if that was an error.
        assigned: how often positions were assigned.
    """

    script: Sequence[Sequence[Message]] = ()
    kept_from = 0
    high_watermark = 1_000
    assigned = 0

    def __init__(self, settings: dict[str, object]) -> None:
        self._batches = [list(batch) for batch in self.script]
        self._rest: list[Message] = []

    def assign(self, positions: list[KafkaPosition]) -> None:
        """Nothing but to count it: the script is given."""
        type(self).assigned += 1

    def poll(self, timeout: float) -> Message | None:
        """The first message of the next batch."""
        self._rest = self._batches.pop(0) if self._batches else []
        return self._rest.pop(0) if self._rest else None

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """The rest of it."""
        assert timeout == 0
        taken, self._rest = self._rest[:num_messages], self._rest[num_messages:]
        return taken

    def get_watermark_offsets(self, place: KafkaPosition, cached: bool) -> tuple[int, int]:
        """The marks of the last fetch, whose end is far away unless the test says otherwise."""
        assert cached
        return 0, self.high_watermark

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        """Both partitions have a leader."""
        partitions = {place.partition: SimpleNamespace(leader=1) for place in PLACES}
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def offsets_for_times(self, wanted: list[KafkaPosition], timeout: float) -> list[KafkaPosition]:
        """The start of each partition."""
        return [KafkaPosition(each.topic, each.partition, self.kept_from) for each in wanted]


def scripted(monkeypatch: pytest.MonkeyPatch, *batches: Sequence[Message]) -> KafkaLogReader:
    """A reader that is assigned and gets these batches."""
    monkeypatch.setattr(ScriptedConsumer, "script", batches)
    monkeypatch.setattr(ScriptedConsumer, "assigned", 0)
    monkeypatch.setattr(kafka_reader, "Consumer", ScriptedConsumer)
    reader = KafkaLogReader(ClusterConfig("demo"), KafkaConfig("localhost:1"))
    reader.assign(dict.fromkeys(PLACES, 0))
    return reader


def test_an_end_before_further_records_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end that is reported holds after the whole batch: a follower must not count as caught up in between."""
    reader = scripted(monkeypatch, [record(0, 0), end(0, 1), end(1, 0), record(0, 1)], [end(0, 2)])
    batch = reader.poll(10, 0)
    assert [found.offset for found in batch.records] == [0, 1]
    assert batch.ended.keys() == {PLACES[1]}
    assert reader.poll(10, 0).ended.keys() == {PLACES[0]}


def test_an_end_whose_high_watermark_is_not_known_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply with an error, which the client does not use otherwise, has replaced it: nothing is confirmed by it."""
    reader = scripted(monkeypatch, [record(0, 0)], [end(0, 1)], [record(0, 1)], [end(0, 2)])
    monkeypatch.setattr(ScriptedConsumer, "high_watermark", -1)
    assert reader.poll(10, 0).high_watermarks == {}
    assert (reader.poll(10, 0), ScriptedConsumer.assigned) == (PolledBatch([], {}), 2)
    monkeypatch.setattr(ScriptedConsumer, "high_watermark", 5)
    assert reader.poll(10, 0).high_watermarks == {PLACES[0]: 5}
    assert (reader.poll(10, 0).ended, ScriptedConsumer.assigned) == ({PLACES[0]: PartitionEnd(2, 5)}, 2)


def test_a_batch_that_may_be_a_part_of_a_reply_tells_no_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next part would tell the same one again, and a reader takes two batches for two replies."""
    reader = scripted(monkeypatch, [record(0, 0), record(0, 1)], [record(0, 2)])
    assert [reader.poll(2, 0).high_watermarks for _ in range(2)] == [{}, {PLACES[0]: 1_000}]


def test_records_before_an_error_are_handed_over_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One broken partition must not swallow what the others brought; afterwards it is not forgotten."""
    monkeypatch.setattr(KafkaQueries, "start_offsets", lambda *_, **__: {PLACES[1]: 8})
    gone = trouble(1, 7, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - librdkafka's own codes begin with an underscore
    monkeypatch.setattr(ScriptedConsumer, "kept_from", 8)
    reader = scripted(monkeypatch, [record(0, 0), gone, record(0, 1)], [record(0, 2)])
    assert [found.offset for found in reader.poll(10, 0).records] == [0, 1]
    for _ in range(2):
        with pytest.raises(LogContinuityError, match=r"demo\.heartbeats\[1\]@7"):
            reader.poll(10, 0)
    reader.assign({PLACES[0]: 2})
    assert [found.offset for found in reader.poll(10, 0).records] == [2]


def test_passing_trouble_is_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client reconnects by itself; the loop sees an empty batch."""
    reader = scripted(monkeypatch, [trouble(0, 3, KafkaError.NOT_LEADER_FOR_PARTITION)], [record(0, 3)])
    assert reader.poll(10, 0) == PolledBatch([], {})
    assert [found.offset for found in reader.poll(10, 0).records] == [3]


def test_one_record_is_asked_for_when_one_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than was asked for would be more than the caller has room for."""
    reader = scripted(monkeypatch, [record(0, 0), record(0, 1)])
    assert [found.offset for found in reader.poll(1, 0).records] == [0]

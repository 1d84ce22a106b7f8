"""Questions about offsets while a partition has no leader, a state that one broker reaches only by chance."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from controlplane.adapters import kafka_queries, kafka_reader
from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.config import HEARTBEATS, ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError

NAME = f"demo.{HEARTBEATS}"


class LeaderlessConsumer:
    """A consumer of a topic of two partitions, asked for offsets; librdkafka answers for all or nothing."""

    leaders: ClassVar[list[list[int]]] = []
    """Of the two partitions, at each look; the last list stays."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._looks = list(self.leaders)
        self._now = self._looks[0]

    def list_topics(self, topic: str, timeout: float) -> SimpleNamespace:
        """What the brokers know."""
        self._now = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate(self._now)}
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def offsets_for_times(self, wanted: list[KafkaPosition], timeout: float) -> list[KafkaPosition]:
        """Partition 0 ends at 10, partition 1 at 11."""
        if any(self._now[each.partition] < 0 for each in wanted):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - so librdkafka names its own codes
        return [KafkaPosition(NAME, each.partition, 10 + each.partition) for each in wanted]

    def poll(self, timeout: float) -> None:
        """Nothing comes."""

    def close(self) -> None:
        """Nothing is held."""


def asked(monkeypatch: pytest.MonkeyPatch, *leaders: list[int]) -> KafkaLogReader:
    """A reader that finds these leaders."""
    monkeypatch.setattr(LeaderlessConsumer, "leaders", list(leaders))
    monkeypatch.setattr(kafka_reader, "Consumer", LeaderlessConsumer)
    monkeypatch.setattr(kafka_queries, "_ELECTION_TIMEOUT_S", 0.2)
    return KafkaLogReader(ClusterConfig("demo"), KafkaConfig("localhost:1"), request_timeout_ms=500)


def test_a_partition_without_a_leader_is_left_out_where_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A take-over goes on with the others; a caller that needs them all gets an error."""
    reader = asked(monkeypatch, [-1, 1])
    second = TopicPartition(HEARTBEATS, 1)
    assert reader.end_offsets(HEARTBEATS, only_answering=True) == {second: 11}
    assert reader.start_offsets(HEARTBEATS, only_answering=True) == {second: 11}
    assert reader.offsets_at_time(HEARTBEATS, 5, only_answering=True) == {second: 11}
    with pytest.raises(LogUnavailableError):
        reader.end_offsets(HEARTBEATS)


def test_no_answer_at_all_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic exists, and no partition has a leader."""
    assert asked(monkeypatch, [-1, -1]).end_offsets(HEARTBEATS, only_answering=True) == {}


def test_an_election_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaders change all the time; a partition whose new one is known in a moment is not left out."""
    reader = asked(monkeypatch, [-1, 1], [-1, 1], [2, 1])
    assert reader.end_offsets(HEARTBEATS, only_answering=True) == {
        TopicPartition(HEARTBEATS, 0): 10,
        TopicPartition(HEARTBEATS, 1): 11,
    }

"""What is made of Kafka's answer about a topic's id, whatever the broker gives."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Self

import pytest
from confluent_kafka import TopicCollection, Uuid

from controlplane.adapters import kafka_topic_ids as module
from controlplane.config import INTENTS, ClusterConfig, KafkaConfig


class Client:
    """Describes every topic with one id, and counts its ends."""

    def __init__(self, topic_id: Uuid) -> None:
        self._topic_id = topic_id
        self.ends = 0

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.ends += 1

    def describe_topics(self, topics: TopicCollection, **_: object) -> dict[str, Future[SimpleNamespace]]:
        """The answers, which are there already."""
        answer: Future[SimpleNamespace] = Future()
        answer.set_result(SimpleNamespace(topic_id=self._topic_id))
        return dict.fromkeys(topics.topic_names, answer)


@pytest.mark.parametrize(
    ("given", "told"), [(Uuid(0, 0), None), (Uuid(-1, -1), "_" * 21 + "w"), (Uuid(0, 1), "A" * 20 + "AQ")]
)
def test_the_id_is_written_as_kafkas_own_tools_print_it(
    monkeypatch: pytest.MonkeyPatch, given: Uuid, told: str | None
) -> None:
    """Zero is what a broker answers that gives topics none."""
    client = Client(given)
    monkeypatch.setattr(module, "KafkaAdmin", lambda *_: SimpleNamespace(client=client))
    assert module.topic_id(ClusterConfig("c"), KafkaConfig("nowhere:1"), INTENTS) == told
    assert client.ends == 1

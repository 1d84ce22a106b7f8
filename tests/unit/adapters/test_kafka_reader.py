"""What a reader does while no broker answers."""

from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Message

from controlplane.adapters import kafka_reader
from controlplane.adapters.kafka_reader import KafkaLogReader
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError

NOWHERE = "127.0.0.1:1"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> set[Consumer]:
    """The clients that were polled."""
    polled: set[Consumer] = set()

    class Watched(Consumer):
        def poll(self, timeout: float = -1) -> Message | None:
            polled.add(self)
            return super().poll(timeout)

    monkeypatch.setattr(kafka_reader, "Consumer", Watched)
    return polled


def test_every_client_is_served_while_the_broker_is_away(
    served: set[Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What librdkafka has to say waits in a queue of each client: without bound, and closing takes its square."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE), request_timeout_ms=100)
    reader.assign({TopicPartition("decisions", 0): 0})
    with monkeypatch.context() as answered:
        topic = SimpleNamespace(error=None, partitions={})
        answer = SimpleNamespace(topics={"test.decisions": topic})
        answered.setattr(kafka_reader.Consumer, "list_topics", lambda *_, **__: answer)
        assert reader.partition_count("decisions") == 0
    served.clear()
    assert not reader.poll(1, 0).records
    assert len(served) == 2, "the one that reads, and the one that is asked"
    reader.close()


@pytest.mark.parametrize("reads", [True, False])
def test_a_client_that_was_not_answered_is_not_asked_again(served: set[Consumer], *, reads: bool) -> None:
    """It may have forgotten where Kafka is; whatever it still had to say is closed with it."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE), request_timeout_ms=100)
    if reads:
        reader.assign({TopicPartition("decisions", 0): 0})
    for _ in range(3):
        with pytest.raises(LogUnavailableError):
            reader.partition_count("decisions")
    assert len(served) >= 3
    served.clear()
    reader.poll(1, 0)
    assert len(served) == 1, "the others are gone"
    reader.close()


def test_every_client_is_served_while_one_only_asks(served: set[Consumer], monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that has nothing to read, or cannot read on, asks where to begin for as long as the broker is away."""
    reader = KafkaLogReader(ClusterConfig("test"), KafkaConfig(NOWHERE), request_timeout_ms=100)
    place = TopicPartition("decisions", 0)

    def served_while_asking() -> int:
        served.clear()
        with pytest.raises(LogUnavailableError):
            reader.start_offsets("decisions")
        return len(served)

    reader.assign({place: 0})
    assert served_while_asking() == 1, "a record could come to the one that reads"
    reader.assign({})
    assert served_while_asking() == 2
    reader.assign({place: 0})
    monkeypatch.setattr(reader, "_broken", LogContinuityError("the place is gone"))
    assert served_while_asking() == 2
    reader.close()

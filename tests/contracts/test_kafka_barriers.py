"""When Kafka tells a writer of the offsets of its barrier, and what readers find then; with a real broker."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer

from controlplane.adapters.kafka_log import KafkaTransactionalWriter
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.values.identifiers import TopicPartition
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.ports import CommitOutcome, OutgoingRecord
from tests.helpers.log_worlds import KafkaLogWorld, open_at_last, read_until_ended

DECISIONS_0 = TopicPartition(DECISIONS, 0)
TABLE_0 = TopicPartition(ROUTING_TABLE, 0)
BARRIER = [OutgoingRecord(topic, b"barrier", b"barrier", 0) for topic in (DECISIONS, ROUTING_TABLE)]


class WatchedWriter(KafkaTransactionalWriter):
    """Notes what a reader of committed records finds after the barrier is flushed and before it is aborted."""

    def __init__(self, world: KafkaLogWorld) -> None:
        """Write to this world."""
        super().__init__(world.cluster, world.kafka)
        self._world = world
        self.ends_before_abort: dict[TopicPartition, int] = {}
        self.told_before_abort: dict[tuple[str, int], int] = {}

    def _abort(self, producer: Producer, cause: KafkaError | None, timeout_s: float | None = None) -> CommitOutcome:
        self.told_before_abort = dict(self._reports.offsets)
        reader = self._world.open_reader()
        reader.assign({DECISIONS_0: 0, TABLE_0: 0})
        ends = read_until_ended(reader, [DECISIONS_0, TABLE_0])
        self.ends_before_abort = {place: end.offset for place, end in ends.items()}
        return super()._abort(producer, cause, timeout_s)


@pytest.fixture
def world(kafka_broker: EmbeddedKafka, cluster_name: str) -> Iterator[KafkaLogWorld]:
    """A cluster of this test's own on the shared broker."""
    world = KafkaLogWorld(kafka_broker.bootstrap_servers, cluster_name)
    yield world
    world.close()


def test_offsets_are_told_after_the_flush_and_before_the_abort(world: KafkaLogWorld) -> None:
    """All in-sync copies hold the barrier by then, whatever becomes of the abort; readers end at it, not before."""
    writer = WatchedWriter(world)
    open_at_last(writer)
    assert writer.commit([OutgoingRecord(DECISIONS, b"1", b"decision", 0)]) is CommitOutcome.COMMITTED
    barrier = writer.write_barrier(BARRIER)
    assert barrier == {DECISIONS_0: 2, TABLE_0: 0}
    assert writer.told_before_abort == {(world.cluster.topic(place.topic), 0): at for place, at in barrier.items()}
    assert writer.ends_before_abort == barrier
    reader = world.open_reader()
    world.settle()
    reader.assign({DECISIONS_0: 0, TABLE_0: 0})
    ends = read_until_ended(reader, list(barrier))
    assert {place: end.offset for place, end in ends.items()} == {DECISIONS_0: 4, TABLE_0: 2}
    writer.close()

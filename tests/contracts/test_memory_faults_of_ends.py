"""The in-memory broker reports ends that are not the end: of a broker that lags, and of markers that are late."""

import pytest

from controlplane.config import DECISIONS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError, LogUnavailableError
from controlplane.ports import CommitOutcome, OutgoingRecord, PartitionEnd, PolledBatch
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.testing.memory_log import BEYOND_END_LIMIT_MS

CLUSTER = ClusterConfig("memory")
TOPIC = CLUSTER.topic(DECISIONS)
DECISIONS_0 = TopicPartition(DECISIONS, 0)


def decision(value: bytes) -> OutgoingRecord:
    """A record for ``decisions``."""
    return OutgoingRecord(DECISIONS, b"key", value)


@pytest.fixture
def clock() -> VirtualClock:
    """The broker's."""
    return VirtualClock()


@pytest.fixture
def broker(clock: VirtualClock) -> MemoryBroker:
    """With one topic."""
    broker = MemoryBroker(clock)
    broker.create_topic(TOPIC)
    return broker


def opened(broker: MemoryBroker) -> MemoryTransactionalWriter:
    """A writer that may commit."""
    writer = MemoryTransactionalWriter(CLUSTER, broker)
    writer.open()
    return writer


def test_one_reader_asks_a_broker_that_lags(broker: MemoryBroker) -> None:
    """It is told of an earlier end, as long as its broker knows no later one; others are told of all."""
    writer = opened(broker)
    writer.commit([decision(b"1")])
    lagging, other = MemoryLogReader(CLUSTER, broker), MemoryLogReader(CLUSTER, broker)
    lagging.stale_ends = stale_ends = lagging.end_offsets(DECISIONS)
    writer.commit([decision(b"2")])
    for reader in (lagging, other):
        reader.assign({DECISIONS_0: 0})
    assert lagging.end_offsets(DECISIONS) == {DECISIONS_0: 2}
    assert lagging.offsets_at_time(DECISIONS, 1 << 60) == {DECISIONS_0: 2}
    assert [record.value for record in lagging.poll(10, 0).records] == [b"1"]
    assert lagging.poll(10, 0).ended == {DECISIONS_0: PartitionEnd(2, 2)}
    assert [record.value for record in other.poll(10, 0).records] == [b"1", b"2"]
    stale_ends.clear()
    assert [record.value for record in lagging.poll(10, 0).records] == [b"2"]


def test_a_reader_beyond_the_end_of_a_broker_that_lags_waits_for_another_one(
    broker: MemoryBroker, clock: VirtualClock
) -> None:
    """It has lost nothing, so it is told nothing for a time that is enough to find the present leader."""
    writer = opened(broker)
    writer.commit([decision(b"1")])
    reader = MemoryLogReader(CLUSTER, broker)
    early_end = reader.end_offsets(DECISIONS)
    writer.commit([decision(b"2")])
    reader.assign({DECISIONS_0: 0})
    assert [record.value for record in reader.poll(10, 0).records] == [b"1", b"2"]
    stale_ends = reader.stale_ends = dict(early_end)
    assert reader.poll(10, 0) == PolledBatch([], {})
    clock.advance(BEYOND_END_LIMIT_MS - 1)
    assert reader.poll(10, 0) == PolledBatch([], {})
    stale_ends.clear()
    writer.commit([decision(b"3")])
    assert [record.value for record in reader.poll(10, 0).records] == [b"3"]
    stale_ends |= early_end
    assert reader.poll(10, 0) == PolledBatch([], {})
    clock.advance(BEYOND_END_LIMIT_MS)
    with pytest.raises(LogContinuityError, match="is not there"):
        reader.poll(10, 0)


def test_a_commit_is_acknowledged_before_its_marker_is_written(broker: MemoryBroker) -> None:
    """Readers wait, and so does the coordinator's next transaction, of whichever writer."""
    writer = opened(broker)
    broker.hold_markers_back(TOPIC, 0)
    assert writer.commit([decision(b"1")]) is CommitOutcome.COMMITTED
    reader = MemoryLogReader(CLUSTER, broker)
    reader.assign({DECISIONS_0: 0})
    assert reader.poll(10, 0) == PolledBatch([], {DECISIONS_0: PartitionEnd(0, 1)})
    assert writer.commit([decision(b"2")]) is CommitOutcome.UNKNOWN
    with pytest.raises(LogUnavailableError):
        opened(broker)
    broker.write_markers(TOPIC, 0)
    assert writer.resolve(0) is CommitOutcome.COMMITTED
    assert [record.value for record in reader.poll(10, 0).records] == [b"1", b"2"]
    assert reader.poll(10, 0).ended == {DECISIONS_0: PartitionEnd(4, 4)}

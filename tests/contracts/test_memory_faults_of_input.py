"""What the in-memory world can do to single records and their readers, as a real cluster does now and then."""

import pytest

from controlplane.config import DECISIONS, HEARTBEATS, ClusterConfig
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.ports import CommitOutcome, Delivery, OutgoingRecord
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, VirtualClock
from controlplane.testing.memory_transactions import MemoryTransactionalWriter

CLUSTER = ClusterConfig("memory")
FIRST, SECOND = TopicPartition(HEARTBEATS, 0), TopicPartition(HEARTBEATS, 1)


class World:
    """A broker with two partitions of heartbeats, a writer, and a reader of both."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(CLUSTER.topic(HEARTBEATS), 2)
        self.broker.create_topic(CLUSTER.topic(DECISIONS))
        self.writer = MemoryEventWriter(CLUSTER, self.broker, message_timeout_ms=1_000)
        self.reader = MemoryLogReader(CLUSTER, self.broker)
        self.reader.assign({FIRST: 0, SECOND: 0})
        self.told: list[Delivery] = []

    def send(self, value: bytes, partition: int) -> None:
        """Append one heartbeat."""
        self.writer.send(OutgoingRecord(HEARTBEATS, b"n", value, partition), self.told.append)

    def read(self) -> list[bytes | None]:
        """What is new to the reader."""
        return [record.value for record in self.reader.poll(100, 0).records]


@pytest.fixture
def world() -> World:
    """A world of the test's own."""
    return World()


def test_a_partition_without_a_leader_takes_and_gives_nothing(world: World) -> None:
    """The others go on; what was sent meanwhile is there once a leader is, and nobody learns its end before."""
    world.send(b"before", 0)
    world.broker.lose_leader(CLUSTER.topic(HEARTBEATS), 0)
    world.send(b"meanwhile", 0)
    world.send(b"elsewhere", 1)
    assert world.read() == [b"elsewhere"]
    with pytest.raises(LogUnavailableError):
        world.reader.end_offsets(HEARTBEATS)
    assert world.reader.end_offsets(HEARTBEATS, only_answering=True) == {SECOND: 1}
    assert world.reader.start_offsets(HEARTBEATS, only_answering=True) == {SECOND: 0}
    assert world.reader.offsets_at_time(HEARTBEATS, 0, only_answering=True) == {SECOND: 0}
    world.broker.elect_leader(CLUSTER.topic(HEARTBEATS), 0)
    assert world.read() == [b"before", b"meanwhile"]
    assert world.reader.end_offsets(HEARTBEATS) == {FIRST: 2, SECOND: 1}


def test_a_partition_that_stays_without_a_leader_gives_records_up(world: World) -> None:
    """A node hears within the message timeout that its heartbeat is not in the log."""
    world.broker.lose_leader(CLUSTER.topic(HEARTBEATS), 0)
    world.send(b"lost", 0)
    world.clock.advance(1_000)
    world.writer.poll(0)
    assert [delivery.error is None for delivery in world.told] == [False]
    world.broker.elect_leader(CLUSTER.topic(HEARTBEATS), 0)
    assert world.read() == []


def test_a_record_that_waits_for_a_dead_follower_holds_up_its_own_writer_only(world: World) -> None:
    """A broker handles the requests of one connection in order; another connection is not concerned."""
    world.broker.lose_follower(CLUSTER.topic(HEARTBEATS), 0)
    world.send(b"waits", 0)
    world.send(b"behind it", 1)
    other = MemoryEventWriter(CLUSTER, world.broker)
    other.send(OutgoingRecord(HEARTBEATS, b"n", b"by another writer", 1))
    assert world.read() == [b"by another writer"]
    world.broker.drop_follower(CLUSTER.topic(HEARTBEATS), 0)
    assert {*world.read()} == {b"behind it", b"waits"}


def test_a_lost_acknowledgement_gives_a_record_up_that_is_in_the_log(world: World) -> None:
    """Whoever takes silence for failure is wrong: the record counts, and its writer must be able to live with that."""
    world.broker.lose_next_acks(1)
    world.send(b"there", 0)
    world.send(b"acknowledged", 0)
    assert world.read() == [b"there", b"acknowledged"]
    world.writer.poll(0)
    assert [delivery.offset for delivery in world.told] == [1]
    world.clock.advance(1_000)
    world.writer.poll(0)
    assert [delivery.error is None for delivery in world.told] == [True, False]


def test_a_doubled_send_is_acknowledged_once(world: World) -> None:
    """Nodes may use any producer, and one that is not idempotent doubles what it retries."""
    world.broker.double_next_sends(1)
    world.send(b"twice", 0)
    world.send(b"once", 0)
    world.writer.poll(0)
    assert world.read() == [b"twice", b"twice", b"once"]
    assert [delivery.offset for delivery in world.told] == [0, 2]


def test_a_partition_can_reach_one_reader_late(world: World) -> None:
    """Partitions have no common order: what is read of one says nothing about another."""
    world.send(b"first", 0)
    world.send(b"second", 1)
    world.reader.held_back = {FIRST}
    assert world.read() == [b"second"]
    world.reader.held_back = ()
    assert world.read() == [b"first"]


def test_somebody_may_look_while_a_transaction_is_open(world: World) -> None:
    """A leader dies or stands still between its records and its commit: readers see nothing of it by then."""
    seen: list[list[bytes | None]] = []
    world.reader.assign({TopicPartition(DECISIONS, 0): 0})
    world.broker.while_open = lambda: seen.append(world.read())
    writer = MemoryTransactionalWriter(CLUSTER, world.broker)
    writer.open()
    assert writer.commit([OutgoingRecord(DECISIONS, b"1", b"decision")]) is CommitOutcome.COMMITTED
    assert seen == [[]]
    assert world.read() == [b"decision"]


def test_a_broker_that_goes_away_within_a_commit_leaves_it_unknown(world: World) -> None:
    """The records are appended, and the end of their transaction is asked for again when the broker is back."""

    def go_away() -> None:
        world.broker.available = False

    world.broker.while_open = go_away
    writer = MemoryTransactionalWriter(CLUSTER, world.broker)
    writer.open()
    assert writer.commit([OutgoingRecord(DECISIONS, b"1", b"decision")]) is CommitOutcome.UNKNOWN
    world.broker.available = True
    assert writer.resolve(0) is CommitOutcome.COMMITTED

"""Reading a cluster from outside, on the in-memory log."""

from collections.abc import Callable, Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.table import encode_row
from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.routing.rows import slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.inspection import readers
from controlplane.inspection.auditing import InputTape
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of

CLUSTER = ClusterConfig("c")


class CountingReader(MemoryLogReader):
    """Counts the records that are fetched."""

    fetched = 0

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """As the reader does."""
        batch = super().poll(max_records, timeout_ms)
        self.fetched += len(batch.records)
        return batch


class RetellingReader(MemoryLogReader):
    """Tells every end again in each batch, as often as the port allows."""

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """As the reader does."""
        batch = super().poll(max_records, timeout_ms)
        self._end_told_at = {}
        return batch


@cache
def some_decisions() -> tuple[Decision, ...]:
    """Decisions of a small cluster with joins and a fenced node: small ones, and ones with all slots."""
    world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=128))
    world.admit("n1", "n2", "n3")
    world.intent("i", "create_namespace", namespace="kv")
    world.run(5_000, ("n1", "n2"))
    return tuple(world.decisions)


def written(parts_bytes: Sequence[int]) -> tuple[MemoryBroker, list[Decision]]:
    """A log in which each decision is a transaction of parts of at most so many bytes."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(DECISIONS))
    writer = MemoryTransactionalWriter(CLUSTER, broker)
    writer.open()
    decisions = [some_decisions()[number % len(some_decisions())] for number in range(len(parts_bytes))]
    for number, (decision, part_bytes) in enumerate(zip(decisions, parts_bytes, strict=True)):
        # The key tells neighbours apart, as the seq does in a real log.
        key = decision_key(decision.seq) + str(number).encode()
        writer.commit([OutgoingRecord(DECISIONS, key, value, 0) for value in encode_decision(decision, part_bytes)])
    return broker, decisions


@given(st.lists(st.sampled_from([1_000, 2_000, 900_000]), max_size=12), st.integers(1, 9))
def test_backwards_is_the_log_reversed(parts_bytes: list[int], window: int) -> None:
    """Whatever the parts of decisions and the windows of reading, each decision comes whole and once."""
    broker, decisions = written(parts_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_FIRST_DECISIONS", window)
        found = [logged.decision for logged in readers.decisions_backwards(source_of(MemoryLogReader(CLUSTER, broker)))]
    assert found == decisions[::-1]


def test_the_cut_decisions_of_these_tests_have_parts() -> None:
    """Without parts the rule about the first key of a window would never be tried."""
    assert max(len(encode_decision(decision, 1_000)) for decision in some_decisions()) > 3


def test_last_decisions_are_read_without_reading_the_log() -> None:
    """Ten million decisions behind it must not make ``log show`` slow."""
    broker, decisions = written([900_000] * 1_000)
    reader = CountingReader(CLUSTER, broker)
    assert [logged.decision for logged in readers.read_last_decisions(source_of(reader), 5)] == decisions[-5:]
    assert reader.fetched <= 2 * 64


def test_fewer_decisions_than_asked_for() -> None:
    """A young log is shown whole."""
    broker, decisions = written([900_000] * 2)
    assert [
        logged.decision for logged in readers.read_last_decisions(source_of(MemoryLogReader(CLUSTER, broker)), 20)
    ] == decisions


def test_table_is_the_state_also_after_compaction() -> None:
    """Compaction leaves the last row of each key, and the digest says that nothing is missing."""
    world = PublishedWorld(CLUSTER)
    assert _slots(world) == world.state.slots.table
    world.admit("n1", "n2", "n3")
    world.run(5_000, ("n1", "n2"))
    world.broker.compact(CLUSTER.topic(ROUTING_TABLE), drop_tombstones=True)
    assert _slots(world) == world.state.slots.table


def test_no_table_before_the_first_leader() -> None:
    """An empty topic is no error."""
    world = PublishedWorld(CLUSTER)
    world.broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
    assert readers.read_routing_table(source_of(world.reader())) is None


def test_a_row_that_no_leader_wrote_is_not_shown() -> None:
    """The last table that was whole is, with a warning once the leader that follows does not know of the row."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")
    before = _slots(world)
    intruder = MemoryEventWriter(CLUSTER, world.broker)
    row = encode_row(Slot(0, "evil", (), Epoch(1)))
    intruder.send(OutgoingRecord(ROUTING_TABLE, slot_key(0).encode(), row, 0))
    assert _slots(world) == before
    intruder.send(OutgoingRecord(ROUTING_TABLE, b"nonsense", b"garbage", 0))
    world.admit("n2")
    with capture_logs() as logs:
        table = readers.read_routing_table(source_of(world.reader(), timeout_ms=50))
    assert table is not None
    assert table.slots == before
    assert "leader show" in logs[-1]["problem"]


def test_a_table_of_garbage_alone_is_an_error_that_says_what_to_do() -> None:
    """There is no last table to show."""
    world = PublishedWorld(CLUSTER)
    world.broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
    MemoryEventWriter(CLUSTER, world.broker).send(OutgoingRecord(ROUTING_TABLE, b"nonsense", b"garbage", 0))
    with pytest.raises(LogUnavailableError, match="'controlplane leader show'"):
        readers.read_routing_table(source_of(world.reader(), timeout_ms=50))


@pytest.mark.parametrize(
    "read",
    [
        lambda reader: readers.read_routing_table(source_of(reader, timeout_ms=50)),
        lambda reader: readers.read_last_decisions(source_of(reader, timeout_ms=50), 3),
        lambda reader: readers.read_last_heartbeats(source_of(reader, timeout_ms=50), {"n1"}, 1_000),
    ],
)
def test_log_that_stops_answering_ends_the_wait(read: Callable[[MemoryLogReader], object]) -> None:
    """A reader that reconnects for ever would hang a command for ever."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")

    class Deaf(MemoryLogReader):
        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            return PolledBatch((), {})

    with pytest.raises(LogUnavailableError, match=r"was not reached (within|in) \d+ ms"):
        read(Deaf(CLUSTER, world.broker))


def test_the_end_of_a_topic_that_never_rests_is_found() -> None:
    """Controllers tick all the time: a moment in which nothing follows may come late, or never."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")
    too_late_ms = world.now_ms + 10_000

    class Restless(MemoryLogReader):
        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            assert world.now_ms < too_late_ms, "still reading"
            batch = super().poll(max_records, timeout_ms)
            world.run(200, ("n1",))
            return PolledBatch(batch.records, {})

    tail = readers.read_last_heartbeats(source_of(Restless(CLUSTER, world.broker)), {"n1"}, 1_000)
    assert tail.last["n1"].heartbeat.node_id == "n1"


def test_last_heartbeats_pass_bad_records_by() -> None:
    """One unreadable record must not hide all nodes."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")
    writer = MemoryTransactionalWriter(CLUSTER, world.broker)
    writer.open()
    writer.commit([OutgoingRecord(HEARTBEATS, b"n1", b"no avro", partition) for partition in range(3)])
    tail = readers.read_last_heartbeats(source_of(world.reader()), {"n1"}, 60_000)
    assert tail.last["n1"].heartbeat.node_id == "n1"
    assert tail.now_ms == world.now_ms


def test_heartbeats_are_looked_for_only_so_far_back() -> None:
    """A node that was never heard costs a look at a window of time, not at the whole topic."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")
    world.run(400_000, ("n1",))
    reader = CountingReader(CLUSTER, world.broker)
    tail = readers.read_last_heartbeats(source_of(reader), {"n1", "silent"}, longest_ms=30_000)
    assert set(tail.last) == {"n1"}
    assert reader.fetched < 0.5 * sum(reader.end_offsets(HEARTBEATS).values())


def test_follower_sees_what_comes_after_it_began() -> None:
    """Who waits for an answer must not take an old decision for it."""
    world = PublishedWorld(CLUSTER)
    world.admit("n1")
    follower = readers.DecisionFollower(source_of(world.reader()))
    assert follower.wait_for(lambda _: True, timeout_ms=50) is None
    world.admit("n2")
    logged = follower.wait_for(lambda found: bool(found.decision.certificate), timeout_ms=1_000)
    assert logged is not None
    assert logged.decision == world.decisions[-1]


def _slots(world: PublishedWorld) -> tuple[Slot, ...]:
    table = readers.read_routing_table(source_of(world.reader()))
    assert table is not None
    assert (table.epoch, table.seq, table.log_id) == (world.state.epoch, world.state.seq, world.state.log_id)
    return table.slots


@pytest.mark.timeout(20)
def test_ends_that_are_told_again_are_no_news_of_a_partition_that_is_silent() -> None:
    """Whoever reads to the end of all partitions gives up the one of which nothing comes, in his time."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(HEARTBEATS), 2)
    writer = MemoryEventWriter(CLUSTER, broker)
    for partition in (0, 1):
        writer.send(OutgoingRecord(HEARTBEATS, b"n1", b"", partition))
    writer.poll(0)
    reader = RetellingReader(CLUSTER, broker)
    reader.held_back = [TopicPartition(HEARTBEATS, 1)]
    with pytest.raises(LogUnavailableError, match=r"heartbeats\[1\]"):
        readers.read_last_heartbeats(source_of(reader, timeout_ms=100), {"n1"}, 1_000)
    tape = InputTape(source_of(reader, timeout_ms=100))
    tape.seek({TopicPartition(HEARTBEATS, partition): 0 for partition in (0, 1)})
    with pytest.raises(LogUnavailableError, match="heartbeats"):
        list(tape.read_to({TopicPartition(HEARTBEATS, partition): 1 for partition in (0, 1)}))

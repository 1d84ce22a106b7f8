"""Controllers that take over with little knowledge, or without the log: what they must not do meanwhile."""

import time
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP, SNAPSHOTS, ClusterConfig
from controlplane.core.intents.intent import IntentKind
from controlplane.core.membership.events import NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch, TopicPartition
from controlplane.errors import LogUnavailableError, PrerequisiteError
from controlplane.ports import LogReader, OutgoingRecord, PolledBatch
from controlplane.service.follower import LogFollower
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)
from tests.helpers.crowded import CrowdedReader
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.published_world import PublishedWorld


class LateHeartbeats:
    """A reader that gets two heartbeats or ticks a poll, and everything else at once."""

    def __init__(self, heartbeats: LogReader, others: LogReader) -> None:
        """Read through two readers."""
        self._heartbeats = heartbeats
        self._others = others

    def __getattr__(self, name: str) -> object:
        """Questions go to one of them."""
        return getattr(self._others, name)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Split what is to be read."""
        late = {place: offset for place, offset in positions.items() if place.topic == HEARTBEATS}
        self._heartbeats.assign(late)
        self._others.assign({place: offset for place, offset in positions.items() if place not in late})

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Little of the one and much of the other."""
        late, other = self._heartbeats.poll(2, 0), self._others.poll(max_records, timeout_ms)
        return PolledBatch([*other.records, *late.records], {**other.ended, **late.ended})


class BrokenTicks(MemoryEventWriter):
    """A writer to whom Kafka says for good that it may not write."""

    def partition_count(self, topic: str) -> int:
        """See :meth:`controlplane.ports.EventWriter.partition_count`."""
        raise PrerequisiteError(f"there is no topic {topic}")


class NoTransactions(MemoryTransactionalWriter):
    """A writer to whom the coordinator of its transactions does not answer."""

    def open(self) -> None:
        """See :meth:`controlplane.ports.TransactionalWriter.open`."""
        time.sleep(0.4)
        raise LogUnavailableError("no answer from the coordinator")


class LateCluster(ObservedCluster):
    """A cluster whose controllers read heartbeats late."""

    def reader(self) -> LogReader:
        """See :meth:`ObservedCluster.reader`."""
        return LateHeartbeats(super().reader(), super().reader())  # type: ignore[return-value]


def test_a_node_that_a_cold_leader_admits_is_not_fenced_for_the_time_before() -> None:
    """Its silence begins with its admission, so a leader first reads the past, or would count it against the node."""
    with LateCluster() as world:
        first = world.start("c1")
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        since_ms = world.clock.monotonic_ms()
        world.wait_until(lambda: world.clock.monotonic_ms() - since_ms > 2 * world.policy.silence_limit_ms)
        first.end()
        joined = NodeJoined("n4", 1, NodeRole.DATA, (), "", 1, 0, "1", 0)
        world.send(MEMBERSHIP, "n4", encode_input(joined))
        world.start("c2")
        world.wait_until(lambda: has(world, NodeAdmitted, "n4"))
        world.join("n4")
        since_ms = world.clock.monotonic_ms()
        world.wait_until(lambda: world.clock.monotonic_ms() - since_ms > 2 * world.policy.silence_limit_ms)
        assert not has(world, NodeFenced, "n4")


def test_a_heartbeat_that_still_waited_for_its_join_is_refused_by_the_next_leader() -> None:
    """A decision's positions may pass it before its time is over, and its leader may end before then."""
    with ObservedCluster() as world:
        first = world.start("c1")
        world.start("c2")
        world.wait_until(world.decisions)
        stranger = Heartbeat("stranger", 1, 0, Epoch(0), NodeRole.DATA)
        world.send(HEARTBEATS, "stranger", encode_input(stranger))
        seq = world.decisions()[-1].seq
        world.intent("i1", IntentKind.CREATE_NAMESPACE.value, namespace="a")
        world.wait_until(lambda: world.decisions()[-1].seq > seq)
        assert world.dead_letters() == []
        world.leases.available = False
        first.end()
        since_ms = world.clock.monotonic_ms()
        world.wait_until(lambda: world.clock.monotonic_ms() - since_ms > 2 * world.policy.silence_limit_ms)
        world.leases.available = True
        world.wait_until(lambda: [letter.reason for letter in world.dead_letters()] == ["never_joined"])
        assert world.decisions()[-1].controller_id == "c2"


def test_a_controller_whose_ticks_are_not_acknowledged_leads_until_those_of_another_one_are() -> None:
    """While it is alone, a step-down would help none. The other one notes its acknowledgements in the lease store."""
    with ObservedCluster() as world:
        ticks = world.event_writer()
        world.start("cut off", ticks)
        world.wait_until(world.decisions)
        ticks.connected = False
        since_ms = world.clock.monotonic_ms()
        world.wait_until(lambda: world.clock.monotonic_ms() - since_ms > 2_000)
        assert {decision.controller_id for decision in world.decisions()} == {"cut off"}
        world.start("connected")
        world.wait_until(lambda: world.decisions()[-1].controller_id == "connected")
        seq = world.decisions()[-1].seq
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert {decision.controller_id for decision in world.decisions() if decision.seq > seq} == {"connected"}


def test_preferred_controllers_that_cannot_lead_leave_it_to_one_that_can() -> None:
    """Two: the one would be waited for while the other tries, and the third would never have its turn."""
    with ObservedCluster() as world, capture_logs() as logs:
        for name in ("preferred 1", "preferred 2"):
            world.start(name, priority=5, transactions=NoTransactions)
        world.wait_until(lambda: world.leases.lease.term >= 3)
        world.start("able", priority=1)
        world.wait_until(world.decisions)
        assert world.decisions()[0].controller_id == "able"
    waits = [(each["failures"], each["wait_ms"]) for each in logs if each["event"].startswith("take-over failed")]
    assert {failures for failures, _ in waits} >= {1, 2}
    for failures, wait_ms in waits:
        leases_ms = 300 * 2 ** min(failures, 3)
        assert leases_ms // 2 <= wait_ms < leases_ms


def test_a_standby_whose_ticks_have_ended_for_good_ends_with_them() -> None:
    """Nobody would notice before it leads, and the cluster's time hangs on the ticks."""
    with ObservedCluster() as world:
        world.start("leader")
        world.wait_until(world.decisions)
        broken = BrokenTicks(world.cluster, world.broker)
        standby = world.start("standby", broken)
        deadline_s = time.monotonic() + 10
        while standby.alive and time.monotonic() < deadline_s:
            time.sleep(0.02)
        assert isinstance(standby.failure, PrerequisiteError)


def test_nodes_that_have_seen_a_later_epoch_are_told_of_and_stop_nobody() -> None:
    """The log may have lost its end; but anything may write a heartbeat."""
    with ObservedCluster() as world, capture_logs() as logs:
        first = world.start("c1")
        world.join("n1")
        world.send(MEMBERSHIP, "n2", encode_input(NodeJoined("n2", 1, NodeRole.DATA, (), "", 1, 0, "1", 0)))
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        world.send(HEARTBEATS, "n2", encode_input(Heartbeat("n2", 1, 99, Epoch(77), NodeRole.DATA)))
        first.end()
        world.start("c2")
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")
    (told,) = [entry for entry in logs if entry["event"].startswith("nodes say that they have a later table")]
    assert (told["latest"], told["nodes"]) == (77, ["n2"])


def test_a_contender_that_gets_nothing_from_the_log_gives_up_soon() -> None:
    """Sixty seconds may be needed to read a long log, but not to find out that nothing comes."""
    clock = VirtualClock()
    cluster, broker = ClusterConfig("test"), MemoryBroker(clock)
    for topic in (DECISIONS, SNAPSHOTS):
        broker.create_topic(cluster.topic(topic))

    class Frozen(MemoryLogReader):
        """Assigned, and then never heard of again."""

        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            """Let time pass."""
            clock.advance(timeout_ms)
            return PolledBatch((), {})

    MemoryEventWriter(cluster, broker).send(OutgoingRecord(DECISIONS, b"1", b"garbage", 0))
    follower = LogFollower(lambda: Frozen(cluster, broker), clock)
    began_at_ms = clock.monotonic_ms()
    with pytest.raises(LogUnavailableError, match="decisions was not reached in 5000 ms"):
        follower.read_to_end(60_000, 5_000)
    assert clock.monotonic_ms() - began_at_ms == 5_000


def test_a_foreign_writer_that_never_pauses_starves_no_take_over() -> None:
    """Neither a controller that starts nor one that takes over waits for a moment in which nothing is written."""
    clock = VirtualClock()
    world = PublishedWorld(ClusterConfig("test"))
    world.admit("n1")
    follower = LogFollower(lambda: CrowdedReader(world.cluster, world.broker, DECISIONS), clock)
    assert any(follower.poll(0) for _ in range(10))
    follower.read_to_end(60_000, 5_000)
    assert follower.state == world.state


def has(world: ObservedCluster, kind: type[NodeAdmitted | NodeFenced], node_id: str) -> bool:
    """Whether any decision holds such an event about the node."""
    for decision in world.decisions():
        for event in decision.events:
            if isinstance(event, NodeAdmitted) and kind is NodeAdmitted and event.node.node_id == node_id:
                return True
            if isinstance(event, NodeFenced) and kind is NodeFenced and event.node_id == node_id:
                return True
    return False

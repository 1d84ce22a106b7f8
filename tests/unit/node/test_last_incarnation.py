"""A node's incarnation is above its former one, whatever its clock says and whatever the table has forgotten."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec.inputs import encode_input
from controlplane.config import MEMBERSHIP, ClusterConfig
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import NodeLeaving, NodeLeft
from controlplane.core.membership.node import NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import ConfigurationError
from controlplane.node import NodeAgent
from controlplane.node.description import NodeDescription, join_record
from controlplane.node.last_incarnation import last_incarnation
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader
from tests.helpers.crowded import CrowdedReader
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until

CLUSTER = ClusterConfig("test")


class SlowClock(SystemClock):
    """Its wall clock is an hour behind."""

    def wall_ms(self) -> int:
        """An hour ago."""
        return super().wall_ms() - 3_600_000


@dataclass
class Membership:
    """The topic, with what nodes asked for."""

    broker: MemoryBroker
    reader: MemoryLogReader

    def append(self, key: str, value: InputPayload | bytes) -> None:
        """A node asks for something."""
        writer = MemoryEventWriter(CLUSTER, self.broker, 1_000)
        record = value if isinstance(value, bytes) else encode_input(value)
        writer.send(OutgoingRecord(MEMBERSHIP, key.encode(), record))
        writer.flush(0)

    def last(self, node_id: str) -> int:
        """What is known of a node."""
        return last_incarnation(self.reader, node_id, threading.Event())


@pytest.fixture
def membership() -> Membership:
    """Nobody has asked for anything."""
    broker = MemoryBroker(SystemClock())
    broker.create_topic(CLUSTER.topic(MEMBERSHIP))
    return Membership(broker, MemoryLogReader(CLUSTER, broker))


def test_the_greatest_incarnation_that_asked_for_anything_is_known(membership: Membership) -> None:
    """Records of others, and such as nobody can read, say nothing."""
    assert membership.last("n1") == 0
    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    membership.append("n2", join_record(NodeDescription("n2"), 900, 1))
    assert membership.last("n1") == 70
    membership.append("n1", NodeLeaving("n1", 80, "test"))
    membership.append("n1", NodeLeft("n1", 75, "test"))
    membership.append("n1", b"what is this")
    assert membership.last("n1") == 80


def test_a_node_without_the_right_to_look_goes_by_its_clock(membership: Membership) -> None:
    """Rights that were granted before this one existed must not keep a node out."""

    class Denied(MemoryLogReader):
        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            raise ConfigurationError(f"may not read {max_records} records in {timeout_ms} ms")

    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    assert last_incarnation(Denied(CLUSTER, membership.broker), "n1", threading.Event()) == 0


def test_a_topic_that_is_away_for_a_moment_is_waited_for(membership: Membership) -> None:
    """Without it the node could not join anyway."""

    class Away(MemoryLogReader):
        def __init__(self) -> None:
            super().__init__(CLUSTER, membership.broker)
            self.connected = False

        def assign(self, positions: Mapping[TopicPartition, int]) -> None:
            assert self.connected, "it could not be asked where the topic ends"
            super().assign(positions)

    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    reader = Away()
    threading.Timer(0.1, lambda: setattr(reader, "connected", True)).start()
    assert last_incarnation(reader, "n1", threading.Event()) == 70


def test_a_topic_that_never_ends_is_not_waited_for_for_ever(membership: Membership) -> None:
    """Its reader gets nothing: the node goes by its clock, and says so."""
    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    membership.reader.held_back = {TopicPartition(MEMBERSHIP, 0)}
    with capture_logs() as lines:
        assert membership.last("n1") == 0
    assert [line["event"] for line in lines] == ["former incarnations not known"]


def test_a_foreign_writer_that_never_pauses_keeps_no_node_out(membership: Membership) -> None:
    """Kafka reports no end beside it; the end that was asked for before is reached all the same."""
    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    reader = CrowdedReader(CLUSTER, membership.broker, MEMBERSHIP)
    assert last_incarnation(reader, "n1", threading.Event()) == 70


def test_an_agent_that_is_stopped_meanwhile_does_not_wait(membership: Membership) -> None:
    """Whoever stops it has no time for that."""
    stopping = threading.Event()
    stopping.set()
    membership.append("n1", join_record(NodeDescription("n1"), 70, 1))
    assert last_incarnation(membership.reader, "n1", stopping) == 0


def test_an_agent_that_left_is_admitted_again_where_the_clock_is_behind() -> None:
    """Its row is gone from the table, and the controllers would refuse an older incarnation for an hour."""
    with ObservedCluster() as world:
        world.start("c1")
        former = 0
        for clock in (SystemClock(), SlowClock()):
            agent = NodeAgent(
                writer=world.event_writer(),
                reader=world.reader(),
                clock=clock,
                threads=SystemThreads(),
                node=NodeDescription("n1"),
                cluster="test",
            )
            with agent:
                poll_until(lambda: "n1" in nodes_of(world))
                row = nodes_of(world)["n1"]
                assert row.status is NodeStatus.ACTIVE
                assert row.incarnation == former + 1 or not former
                former = row.incarnation
            poll_until(lambda: "n1" not in nodes_of(world))


def nodes_of(world: ObservedCluster) -> Mapping[str, NodeRow]:
    """The rows of nodes in the table."""
    table = world.table()
    return table.nodes if table is not None else {}

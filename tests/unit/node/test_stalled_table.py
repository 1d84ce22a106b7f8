"""A node that is heard but does not hear: only it can tell why it serves nothing."""

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import ROUTING_TABLE
from controlplane.core.membership.node import NodeStatus
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.core.values.identifiers import TopicPartition
from controlplane.node import Access, NodeAgent
from controlplane.node.description import NodeDescription
from controlplane.testing import MemoryLogReader
from tests.helpers.memory_cluster import ObservedCluster, WaitingReader


def test_a_node_that_cannot_read_the_table_refuses_and_says_why_once() -> None:
    """It stays a member, for its heartbeats arrive; it serves again as soon as it can read."""
    registry = CollectorRegistry()
    with ObservedCluster() as world, capture_logs() as lines:
        world.start("c1")
        reader = MemoryLogReader(world.cluster, world.broker)
        agent = NodeAgent(
            writer=world.event_writer(),
            reader=WaitingReader(reader),  # type: ignore[arg-type] # the rest is the wrapped reader's
            clock=world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster="test",
            settings=SessionSettings(heartbeat_interval_ms=50, join_retry_ms=50, self_fencing_margin_ms=200),
            registry=registry,
        )
        agent.start()
        world.wait_until(lambda: agent.slot_ready(3) and agent.ownership(3).access is Access.ACCEPT)
        reader.held_back = {TopicPartition(ROUTING_TABLE, 0)}
        limit_ms = world.policy.silence_limit_ms
        world.wait_until(lambda: agent.ownership(3).access is Access.MOVED)
        age = "controlplane_node_table_age_ms", {"cluster": "test", "node": "n1"}
        world.wait_until(lambda: (registry.get_sample_value(*age) or 0) > 2 * limit_ms)
        assert agent.state is SessionState.ACTIVE
        assert agent.ownership(3).access is Access.MOVED
        table = world.table()
        assert table is not None
        assert table.nodes["n1"].status is NodeStatus.ACTIVE
        reader.held_back = ()
        world.wait_until(lambda: agent.ownership(3).access is Access.ACCEPT)
        agent.stop(drain=False)
    assert sum("routing table not read" in str(line["event"]) for line in lines) == 1

"""A node that nobody admits must not wait in silence."""

from collections.abc import MutableMapping, Sequence

import pytest
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec.inputs import decode_input
from controlplane.config import MEMBERSHIP, ROUTING_TABLE
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.node import NodeAgent
from controlplane.node.description import NodeDescription
from tests.helpers.memory_cluster import ObservedCluster


def test_a_node_that_is_not_admitted_says_so_again_and_again() -> None:
    """Without a leader, or refused as an older incarnation, it repeats its join; the operator has to see that."""
    with ObservedCluster() as world, capture_logs() as lines:
        controller = world.start("c1")
        world.wait_until(world.table)
        controller.end()
        agent = NodeAgent(
            writer=world.event_writer(),
            reader=world.reader(),
            clock=world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster="test",
            settings=SessionSettings(join_retry_ms=20),
        )
        agent.start()
        world.wait_until(lambda: len(warnings(lines)) >= 2)
        agent.stop(drain=False)
    assert [line["joins"] for line in warnings(lines)[:2]] == [10, 20]


def warnings(lines: Sequence[MutableMapping[str, object]]) -> list[MutableMapping[str, object]]:
    """The lines that tell of waiting."""
    return [line for line in lines if "not admitted yet" in str(line["event"])]


@pytest.mark.parametrize("foreign", [None, b"a foreign row"])
def test_a_node_without_a_table_waits_for_it_before_it_joins(foreign: bytes | None) -> None:
    """The table says what a join may contain: without its name, another process could join as this one."""
    with ObservedCluster() as world, capture_logs() as lines:
        if foreign is not None:
            world.send(ROUTING_TABLE, "slot/0", foreign)
        agent = NodeAgent(
            writer=world.event_writer(),
            reader=world.reader(),
            clock=world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster="test",
        )
        agent.start()
        world.wait_until(lambda: any(str(line["event"]).startswith("no whole routing table yet") for line in lines))
        assert agent.state is SessionState.STARTING
        assert not world.records(MEMBERSHIP)
        world.start("c1")
        world.wait_until(lambda: agent.state is SessionState.ACTIVE)
        joins = [decode_input(MEMBERSHIP, record).payload for record in world.records(MEMBERSHIP)]
        agent.stop(drain=False)
    assert all(isinstance(join, NodeJoined) and join.process_id for join in joins)

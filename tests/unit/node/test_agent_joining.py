"""A node that nobody admits must not wait in silence."""

from collections.abc import MutableMapping, Sequence
from itertools import count

import pytest
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec.inputs import decode_input
from controlplane.config import MEMBERSHIP, ROUTING_TABLE
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.node import NodeAgent
from controlplane.node.description import NodeDescription
from tests.helpers.few_ends import FewEnds
from tests.helpers.memory_cluster import ObservedCluster


def started(
    world: ObservedCluster, reader: FewEnds | None = None, settings: SessionSettings | None = None
) -> NodeAgent:
    """A started agent of node ``n1``."""
    agent = NodeAgent(
        writer=world.event_writer(),
        reader=reader or world.reader(),  # type: ignore[arg-type]  # the rest of FewEnds is its reader's
        clock=world.clock,
        threads=SystemThreads(),
        node=NodeDescription("n1"),
        cluster="test",
        settings=settings,
    )
    return agent.start()


def test_a_node_that_is_not_admitted_says_so_again_and_again() -> None:
    """Without a leader, or refused as an older incarnation, it repeats its join; the operator has to see that."""
    with ObservedCluster() as world, capture_logs() as lines:
        controller = world.start("c1")
        world.wait_until(world.table)
        controller.end()
        agent = started(world, settings=SessionSettings(join_retry_ms=20))
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
        agent = started(world)
        world.wait_until(lambda: any(str(line["event"]).startswith("no whole routing table yet") for line in lines))
        assert agent.state is SessionState.STARTING
        assert not world.records(MEMBERSHIP)
        world.start("c1")
        world.wait_until(lambda: agent.state is SessionState.ACTIVE)
        joins = [decode_input(MEMBERSHIP, record).payload for record in world.records(MEMBERSHIP)]
        agent.stop(drain=False)
    assert joins
    assert all(isinstance(join, NodeJoined) and join.process_id for join in joins)


def test_a_node_joins_above_a_join_of_its_own_that_waits_for_a_decision() -> None:
    """Its clock was set back since. Behind the other one it would be refused, and end as one that was replaced."""
    with ObservedCluster() as world:
        controller = world.start("c1")
        world.join("n1")
        world.wait_until(lambda: (table := world.table()) is not None and "n1" in table.nodes)
        controller.end()
        undecided = world.clock.wall_ms() + 3_600_000
        world.join("n1", incarnation=undecided)
        agent = started(world)
        world.wait_until(lambda: agent.state is SessionState.JOINING)
        world.silence("n1")
        world.start("c2")
        world.wait_until(lambda: agent.state is SessionState.ACTIVE)
        table = agent.table
        agent.stop(drain=False)
    assert table is not None
    assert table.nodes["n1"].incarnation == undecided + 1


def test_a_node_that_found_no_table_joins_while_the_leader_never_pauses() -> None:
    """It asks for the end of the topic itself, and joins by the newest table."""
    with ObservedCluster() as world:
        reader = FewEnds(world.reader(), ends_left=1)
        agent = started(world, reader)
        world.wait_until(lambda: reader.ends_left == 0)
        world.start("c1")
        numbers = count()

        def is_active_beside_others() -> bool:
            world.join(f"m{next(numbers)}")  # so that the leader has something to commit
            return agent.state is SessionState.ACTIVE

        world.wait_until(is_active_beside_others)
        agent.stop(drain=False)

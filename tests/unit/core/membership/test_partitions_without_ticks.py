"""A partition of heartbeats in which time stands still: nobody can say there who is silent, and elsewhere one can."""

import pytest

from controlplane.config import HEARTBEATS
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from tests.helpers.world import World

NODES = ("n3", "n1", "n2", "n9", "n5", "n4")
"""They send their heartbeats to partitions 0, 1, 2, 0, 1, 2."""
NEWCOMERS = ("n10", "n6", "n8")
"""Theirs go to partitions 0, 1, 2."""
LIMIT_MS = 2_500


def fleet() -> World:
    """Nodes that have lived for a while, two in each partition."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LIMIT_MS, protected_ratio=0.9))
    world.admit(*NODES)
    world.run(10_000, NODES)
    return world


def fenced(world: World) -> list[str]:
    """Who was fenced, in order."""
    events = [event for decision in world.decisions for event in decision.events]
    return [event.node_id for event in events if isinstance(event, NodeFenced)]


@pytest.mark.parametrize("outage_ms", [3_000, 24_000, 60_000])
@pytest.mark.parametrize(("standing", "dead"), [(0, ("n1", "n2")), (1, ("n3", "n2")), (2, ("n3", "n1"))])
def test_nodes_of_other_partitions_are_fenced_as_soon_as_ever(
    outage_ms: int, standing: int, dead: tuple[str, ...]
) -> None:
    """However long the partition has been without ticks; and its own nodes are left alone, then and afterwards.

    The second of two dead nodes is fenced one heartbeat interval after the first.
    """
    world = fleet()
    world.standing = {standing}
    world.run(outage_ms, NODES)
    assert fenced(world) == []
    living = tuple(name for name in NODES if name not in dead)
    world.run(LIMIT_MS + 200, living)
    assert fenced(world) == sorted(dead)[:1]
    world.run(world.state.cluster.heartbeat_interval_ms, living)
    assert sorted(fenced(world)) == sorted(dead)
    world.standing = set()
    world.run(10_000, living)
    assert sorted(fenced(world)) == sorted(dead)


@pytest.mark.parametrize(("standing", "dead"), [(0, "n1"), (1, "n3"), (2, "n3")])
def test_a_leader_that_began_during_the_outage_fences_too(standing: int, dead: str) -> None:
    """It has seen no tick of that partition at all, and never heard of its nodes."""
    world = fleet()
    world.standing = {standing}
    world.run(60_000, NODES)
    world.take_over(3 * LIMIT_MS)
    living = tuple(name for name in NODES if name != dead)
    world.run(LIMIT_MS + 200, living)
    assert fenced(world) == [dead]
    world.standing = set()
    world.run(10_000, living)
    assert fenced(world) == [dead]


@pytest.mark.parametrize("standing", [0, 1, 2])
def test_a_node_that_was_admitted_during_the_outage_is_fenced_when_it_dies(standing: int) -> None:
    """Its admission is dated by a partition that may be the one without ticks."""
    world = fleet()
    world.standing = {standing}
    world.run(5_000, NODES)
    newcomer = NEWCOMERS[(standing + 1) % 3]
    world.admit(newcomer)
    world.run(LIMIT_MS, (*NODES, newcomer))
    world.run(LIMIT_MS + 200, NODES)
    assert fenced(world) == [newcomer]


@pytest.mark.parametrize("standing", [0, 1, 2])
def test_a_node_that_is_admitted_again_is_not_fenced_for_the_time_before(standing: int) -> None:
    """It was silent for long, was fenced, and has just come back: what counts begins with its admission."""
    world = fleet()
    world.standing = {standing}
    world.run(5_000, NODES)
    back = NODES[(standing + 1) % 3]
    others = tuple(name for name in NODES if name != back)
    world.run(2 * LIMIT_MS, others)
    assert fenced(world) == [back]
    world.join(back)
    world.run(1_000, others)
    assert world.state.membership.nodes[back].lives
    world.run(5_000, NODES)
    assert fenced(world) == [back]


@pytest.mark.parametrize("unread", [0, 1, 2])
def test_a_node_is_not_fenced_for_time_before_its_admission_that_is_read_after_it(unread: int) -> None:
    """Its leader took over without one partition and admitted it; then that partition is read on, bit by bit."""
    world = fleet()
    world.unread = {unread}
    world.run(1_000, NODES)
    world.take_over(3 * LIMIT_MS)
    world.run(8_000, NODES)
    newcomer = NEWCOMERS[unread]
    world.join(newcomer)
    world.run(world.state.cluster.policy.join_linger_ms + 100, NODES)
    assert world.state.membership.nodes[newcomer].lives
    assert world.read_on(LIMIT_MS + 2_000) > 0
    assert fenced(world) == []
    world.unread = set()
    world.run(5_000, (*NODES, newcomer))
    assert fenced(world) == []
    world.run(LIMIT_MS + 1_000, NODES)
    assert fenced(world) == [newcomer]


@pytest.mark.parametrize("standing", [1, 2])
def test_a_node_that_could_not_be_heard_yet_is_not_fenced_when_its_partition_is_back(standing: int) -> None:
    """Admitted during the outage, it has no heartbeat; the time in which it could send none is not counted."""
    world = fleet()
    world.standing = {standing}
    newcomer = NEWCOMERS[standing]
    world.join(newcomer)
    world.run(30_000, NODES)
    assert world.state.membership.nodes[newcomer].lives
    world.standing = set()
    world.run(LIMIT_MS - 200, NODES)
    assert world.state.membership.nodes[newcomer].lives
    world.run(500, NODES)
    assert fenced(world) == [newcomer]


def test_a_node_that_may_have_gone_to_an_unread_partition_is_not_fenced() -> None:
    """Its key belongs there, since partitions were added; where it was heard before, it has not been for long."""
    world = fleet()
    world.standing = {2}
    world.run(10_000, NODES)
    world.append(HEARTBEATS, 1, Heartbeat("n2", 1, 0, Epoch(0), NodeRole.DATA))
    world.run(5_000, NODES)
    world.take_over(3 * LIMIT_MS)
    world.run(5_000, NODES)
    assert fenced(world) == []
    world.standing = set()
    world.run(5_000, tuple(name for name in NODES if name != "n2"))
    assert fenced(world) == ["n2"]


@pytest.mark.parametrize("stands_for_ms", [LIMIT_MS + 500, 20_000])
def test_a_node_that_may_have_gone_to_a_partition_that_stands_is_not_fenced(stands_for_ms: int) -> None:
    """It was heard elsewhere last, and its partition stands since; for as long as that hearing is remembered."""
    others = tuple(name for name in NODES if name != "n2")
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=LIMIT_MS, protected_ratio=0.9))
    world.admit(*NODES)
    for _ in range(10):
        world.append(HEARTBEATS, 1, Heartbeat("n2", 1, 0, Epoch(0), NodeRole.DATA))
        world.run(1_000, others)
    world.standing = {2}
    world.run(stands_for_ms, others)
    assert fenced(world) == []
    world.standing = set()
    world.run(LIMIT_MS, others)
    assert fenced(world) == []
    world.run(500, others)
    assert fenced(world) == ["n2"]

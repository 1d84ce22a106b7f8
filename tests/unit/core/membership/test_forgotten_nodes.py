"""Nodes that are gone for long are forgotten, and their names come back with greater incarnations only."""

import pytest

from controlplane.core.cluster.events import NodesForgotten
from controlplane.core.cluster.policy import SEVERAL_BROKERS_LEVEL, ClusterPolicy
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.deciding.forgetting import FORGOTTEN_AT_ONCE
from controlplane.core.log.apply import apply
from controlplane.core.log.row_changes import rows_of
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.routing.rows import SETTINGS_KEY, node_key
from controlplane.errors import InvariantViolationError
from tests.helpers.world import World

AFTER_MS = 30_000
STAYING = ("n1", "n2", "n3")


def forgetful_world(level: int = SEVERAL_BROKERS_LEVEL, **policy: object) -> World:
    """A small fleet in a cluster that forgets early, and writes its positions each ten seconds."""
    settings = {"slot_count": 16, "forget_nodes_after_ms": AFTER_MS, "positions_interval_ms": 10_000} | policy
    if level < SEVERAL_BROKERS_LEVEL:
        del settings["forget_nodes_after_ms"]
    world = World(ClusterPolicy(**settings), first_feature_level=level)  # type: ignore[arg-type]  # by name
    world.admit(*STAYING)
    return world


def floor(world: World) -> int:
    """The floor of incarnations that readers of the table see."""
    row = rows_of(world.state)[SETTINGS_KEY]
    assert isinstance(row, TableSettings)
    return row.incarnation_floor


def goes(world: World, node_id: str, incarnation: int) -> None:
    """A node joins, and has left or is fenced soon after, in turn."""
    world.join(node_id, incarnation)
    world.heartbeat(node_id, incarnation)
    world.run(500, STAYING)
    if incarnation % 2:
        world.left(node_id, incarnation)
    world.run(4_000, STAYING)
    assert not world.state.membership.nodes[node_id].lives


@pytest.mark.parametrize("incarnation", [7, 8])
def test_a_node_that_is_gone_for_long_is_forgotten(incarnation: int) -> None:
    """State and table have nothing of it; a floor remains of its incarnation."""
    world = forgetful_world()
    goes(world, "old", incarnation)
    world.run(AFTER_MS - 10_000, STAYING)
    assert "old" in world.state.membership.nodes
    world.run(20_000, STAYING)
    assert set(world.state.membership.nodes) == set(world.state.membership.dated_by) == set(STAYING)
    assert set(world.state.membership.admitted_in) == set(STAYING)
    assert node_key("old") not in rows_of(world.state)
    assert floor(world) == incarnation


def test_a_name_that_comes_back_needs_a_greater_incarnation() -> None:
    """The refusal tells from which one on; so it is for names that are new, because one floor stands for all."""
    world = forgetful_world()
    goes(world, "old", 7)
    world.run(AFTER_MS + 10_000, STAYING)
    for node_id in ("old", "new"):
        world.join(node_id, 7)
    world.run(500, STAYING)
    assert [(each.reason, "take one from 8 on" in each.detail) for each in world.refusals] == [
        ("forgotten_incarnation", True)
    ] * 2
    for node_id in ("old", "new"):
        world.join(node_id, 8)
    world.run(500, STAYING)
    assert world.state.membership.nodes["old"].status is NodeStatus.ACTIVE
    assert world.state.membership.nodes["new"].status is NodeStatus.ACTIVE


def test_an_incarnation_that_leaves_no_room_above_it_is_remembered() -> None:
    """With it as the floor, no new name could ever join; no clock has told it."""
    world = forgetful_world()
    goes(world, "broken", 2**53 - 1)
    world.run(AFTER_MS + 10_000, STAYING)
    assert "broken" in world.state.membership.nodes
    assert floor(world) == 0


def test_the_floor_does_not_bind_nodes_that_are_known() -> None:
    """A process that was fenced lately joins again with its incarnation, also below the floor."""
    world = forgetful_world()
    goes(world, "old", 99)
    world.run(AFTER_MS - 8_000, STAYING)
    goes(world, "n4", 2)
    world.run(12_000, STAYING)
    assert floor(world) == 99
    world.join("n4", 2)
    world.heartbeat("n4", 2)
    world.run(500, STAYING)
    assert world.state.membership.nodes["n4"].status is NodeStatus.ACTIVE


def test_an_order_keeps_a_node_known() -> None:
    """Standing orders, pins and exclusions of slots name it; when they are taken back it is forgotten."""
    world = forgetful_world()
    names = ("ordered", "pinned", "barred")
    for incarnation, name in enumerate(names, start=1):
        world.join(name, incarnation, role=NodeRole.DATA)
    world.run(500, STAYING)
    world.ask("set_node", node="ordered", weight="3")
    world.ask("pin_slots", slots="3", node="pinned")
    world.ask("exclude_slots", slots="4", node="barred")
    for incarnation, name in enumerate(names, start=1):
        world.left(name, incarnation)
    world.run(AFTER_MS + 20_000, STAYING)
    assert set(names) <= set(world.state.membership.nodes)
    world.ask("reset_node", node="ordered")
    world.ask("unpin_slots", slots="3", node="pinned")
    world.ask("include_slots", slots="4", node="barred")
    world.run(70_000, STAYING)
    assert set(world.state.membership.nodes) == set(STAYING)


def test_one_decision_forgets_a_bounded_number() -> None:
    """A long list of names would make a decision, and the transaction with its tombstones, long."""
    world = forgetful_world()
    names = [f"x{number:04}" for number in range(2 * FORGOTTEN_AT_ONCE)]
    for name in names:
        world.join(name, role=NodeRole.SESSION)
    world.run(500, STAYING)
    for name in names:
        world.left(name)
    decisions = world.run(AFTER_MS + 30_000, STAYING, step_ms=200)
    forgotten = [len(each.node_ids) for one in decisions for each in one.events if isinstance(each, NodesForgotten)]
    assert forgotten == [FORGOTTEN_AT_ONCE] * 2
    assert set(world.state.membership.nodes) == set(STAYING)


def test_nothing_is_forgotten_below_the_level() -> None:
    """Controllers of that level could not read the decision."""
    world = forgetful_world(level=SEVERAL_BROKERS_LEVEL - 1)
    goes(world, "old", 7)
    world.tick(90_000_000)
    world.run(1_000, STAYING)
    assert "old" in world.state.membership.nodes


@pytest.mark.parametrize("event", [NodesForgotten(("n1",), 5), NodesForgotten(("unknown",), 5)])
def test_a_node_that_lives_or_is_not_known_cannot_be_forgotten(event: NodesForgotten) -> None:
    """Such an event in a log was written by no leader."""
    with pytest.raises(InvariantViolationError, match="cannot be forgotten"):
        apply(forgetful_world().state, event)


def test_the_floor_does_not_fall() -> None:
    """A name could come back with an incarnation that it had."""
    world = forgetful_world()
    goes(world, "old", 7)
    world.run(AFTER_MS + 10_000, STAYING)
    with pytest.raises(InvariantViolationError, match="would lower it"):
        apply(world.state, NodesForgotten((), 6))

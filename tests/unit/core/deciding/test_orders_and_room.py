"""Orders pass what balancing waits for, but not what nodes promise to hold."""

import pytest

from controlplane.config import MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.inspection.table_status import table_status
from tests.helpers.logs import complaints_of
from tests.helpers.world import World


def test_a_pin_does_not_fill_a_node_above_its_capacity() -> None:
    """The row that makes room waits for the cool-down, so the pinned one waits with it."""
    world = World(ClusterPolicy(slot_count=8, replica_count=1, join_linger_ms=0, cool_down_ms=60_000))
    for name in ("n1", "n2"):
        world.append(MEMBERSHIP, 0, NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 4, "1", world.now_ms))
        world.heartbeat(name)
    world.tick()
    world.decide()
    assert (len(world.held("n1")), len(world.held("n2"))) == (4, 4)
    slot_id = min(world.held("n2"))
    world.ask("pin_slots", slots=str(slot_id), node="n1")
    assert len(world.held("n1")) == 4
    waiting = {each.slot_id: each.reason for each in table_status(world.state, world.observations).waiting}
    assert waiting[slot_id] == "n1 has no room until waiting rows are carried out"
    world.run(61_000, ("n1", "n2"))
    assert world.state.slots.table[slot_id].leader == "n1"
    assert len(world.held("n1")) == 4
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize("ends", ["it dies", "another process takes its place"])
def test_a_slot_whose_leader_is_gone_does_not_wait_for_room_where_it_is_pinned(ends: str) -> None:
    """Or a dead node would lead it until the cool-down of the row that makes room ends."""
    world = World(ClusterPolicy(slot_count=8, replica_count=1, join_linger_ms=0, cool_down_ms=60_000))
    for name in ("n1", "n2", "n3", "n4"):
        world.append(MEMBERSHIP, 0, NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 2, "1", world.now_ms))
        world.heartbeat(name)
    world.tick()
    world.decide()
    slot_id = min(world.held("n2"))
    world.ask("pin_slots", slots=str(slot_id), node="n1")
    assert world.state.slots.table[slot_id].leader == "n2"
    if ends != "it dies":
        world.append(MEMBERSHIP, 0, NodeJoined("n2", 2, NodeRole.DATA, (), "", 1, 2, "1", world.now_ms))
    world.run(4_000, ("n1", "n3", "n4"))
    assert world.state.slots.table[slot_id].leader == "n1"
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize("slot_policy", ["ring", "rendezvous"])
def test_no_dead_node_keeps_slots_under_a_policy_that_ignores_capacities(slot_policy: str) -> None:
    """There, nodes may hold more than they say, and no row ever makes room."""
    world = World(
        ClusterPolicy(slot_count=64, replica_count=2, slot_policy=slot_policy, cool_down_ms=60_000, moves_in_flight=2)
    )
    names = ("n1", "n2", "n3", "n4")
    for name in names:
        world.append(MEMBERSHIP, 0, NodeJoined(name, 1, NodeRole.DATA, (), "", 1, 8, "1", world.now_ms))
    world.run(400, names)
    world.append(MEMBERSHIP, 0, NodeJoined("n5", 1, NodeRole.DATA, (), "", 1, 8, "1", world.now_ms))
    world.run(400, (*names, "n5"))
    assert world.held("n4")
    world.run(4_000, ("n1", "n2", "n3", "n5"))
    assert world.held("n4") == set()
    assert world.state.slots.plan is not None
    assert complaints_of(world.decisions) == []


def test_a_drain_does_not_wait_for_a_sick_node_to_get_ready() -> None:
    """It beats, but works with an old table for ever: that is why somebody drains it."""
    world = World(ClusterPolicy(slot_count=8, replica_count=1, join_linger_ms=0, moves_in_flight=2))
    world.admit("n1", "n2")
    assert len(world.held("n2")) == 4
    world.ask("drain_node", node="n2")
    for _ in range(20):
        world.heartbeat("n1", 1, world.state.epoch)
        world.heartbeat("n2", 1, 1)
        world.run(1_000)
    assert world.held("n2") == set()
    assert complaints_of(world.decisions) == []


def test_slots_that_are_kept_leave_a_log_that_can_be_verified() -> None:
    """A kept slot is no row of the plan, so the ids of the others are not their places."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1", "n2", "n3", "n4")
    world.ask("exclude_slots", slots="6", node="n1")
    world.ask("pin_slots", slots="15", node="n1", leads="true")
    for name in ("n2", "n3", "n4"):
        world.ask("drain_node", node=name)
    assert [slot.slot_id for slot in world.state.slots.table if "n1" not in slot.replicas] == [6]
    assert complaints_of(world.decisions) == []

"""Operators' orders wait neither for the cool-down nor for the return window, and keep to the budget."""

import pytest

from controlplane.core.values.identifiers import NodeId
from tests.helpers.logs import complaints_of
from tests.helpers.paced_worlds import carry_on, moves_of, paced_world, start
from tests.helpers.world import World


def displaced(world: World) -> tuple[int, NodeId, NodeId, NodeId]:
    """A slot that a pin took from one of its two holders: the slot, who lost it, who kept it, who got it."""
    start(world, "n1", "n2", "n3")
    holders = set(world.state.slots.table[6].replicas)
    (stranger,) = {"n1", "n2", "n3"} - holders
    world.ask("pin_slots", slots="6", node=stranger)
    world.ask("unpin_slots", slots="6", node=stranger)
    (loser,) = holders - set(world.state.slots.table[6].replicas)
    (keeper,) = holders - {loser}
    assert any((each.slot_id, each.node_id) == (6, loser) for each in world.state.slots.departures)
    return 6, loser, keeper, stranger


def test_a_pin_does_not_wait_for_the_return_window() -> None:
    """It is an order, not balancing: the answer says that it is done, and it is."""
    world = paced_world()
    slot_id, loser, _, _ = displaced(world)
    world.ask("pin_slots", slots=str(slot_id), node=loser)
    assert slot_id in world.held(loser)
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize("kind", ["drain_node", "exclude_node", "exclude_slots"])
def test_a_relief_does_not_wait_for_the_return_window(kind: str) -> None:
    """Whoever is to be relieved is relieved, also by somebody who gave the slot up lately."""
    world = paced_world()
    slot_id, loser, keeper, stranger = displaced(world)
    world.ask(kind, node=stranger, **({"slots": str(slot_id)} if kind == "exclude_slots" else {}))
    assert set(world.state.slots.table[slot_id].replicas) == {loser, keeper}
    assert not any((each.slot_id, each.node_id) == (slot_id, stranger) for each in world.state.slots.departures)
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize("kind", ["pin_slots", "drain_node", "exclude_slots", "exclude_node"])
def test_an_order_does_not_wait_for_the_cool_down(kind: str) -> None:
    """What only balances waits, in the same plan."""
    world = paced_world(cool_down_ms=60_000)
    start(world, "n1", "n2", "n3")
    slot = world.state.slots.table[6]
    (stranger,) = {"n1", "n2", "n3"} - set(slot.replicas)
    follower = slot.followers[0]
    match kind:
        case "pin_slots":
            world.ask(kind, slots="6", node=stranger, leads="true")
            assert world.state.slots.table[6].leader == stranger
            world.ask(kind, slots="6", node=stranger)
            world.ask(kind, slots="6", node=follower, leads="true")
            assert world.state.slots.table[6].leader == follower
        case "exclude_slots":
            world.ask(kind, slots="6", node=follower)
            assert 6 not in world.held(follower)
        case _:
            world.ask(kind, node=follower)
            assert world.held(follower) == set()
    assert complaints_of(world.decisions) == []


def test_an_order_keeps_to_the_budget_and_goes_before_balancing() -> None:
    """A drain moves no more at once than may be on the move."""
    world = paced_world(moves_in_flight=2)
    start(world, "n1", "n2", "n3")
    before = world.state.slots.table
    world.ask("drain_node", node="n1")
    assert 0 < moves_of(world.decisions[-1], before) <= 2
    assert world.state.slots.plan is not None
    carry_on(world, "n1", "n2", "n3")
    assert world.held("n1") == set()
    assert complaints_of(world.decisions) == []

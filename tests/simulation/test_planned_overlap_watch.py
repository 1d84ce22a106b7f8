"""The watch over planned moves: what it takes for planned, and what it must not let pass."""

from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.slots.events import SlotsAssigned
from tests.helpers.slot_world import SlotWorld
from tests.simulation.invariants.planned_overlap import RELEASES, PlannedOverlapWatch
from tests.simulation.invariants.verdicts import BrokenInvariantError, Verdicts
from tests.simulation.world import World as SimulatedWorld


class _Nobody(SimulatedWorld):
    """A world without machines: the watch is only shown decisions."""

    def __init__(self) -> None:
        """Nothing runs."""


def seen(decisions: list[Decision]) -> Verdicts:
    """The verdicts of a watch that sees these decisions, from the first of their log on."""
    verdicts, state = Verdicts(), State()
    watch = PlannedOverlapWatch(_Nobody(), verdicts)
    for decision in decisions:
        after = apply_decision(state, decision)
        watch.see(state, decision, after)
        state = after
    return verdicts


def world_with(*, hands_off: bool = True, slot_policy: str = "minimal") -> SlotWorld:
    """Two nodes with a copy each of all slots."""
    world = SlotWorld(ClusterPolicy(slot_count=8, slot_policy=slot_policy))
    world.start("n1", "n2", hands_off=hands_off)
    world.go(5_000)
    return world


def taken(world: SlotWorld) -> Verdicts:
    """The verdicts on a decision that gives a slot of n1, one that it releases if there is any, to n2 by one row."""
    verdicts = Verdicts()
    led = [slot for slot in world.state.slots.table if slot.leader == "n1"]
    row = min(led, key=lambda slot: slot.slot_id not in world.state.slots.handoffs)
    decision = replace(
        world.decisions[-1], events=(SlotsAssigned((row.assigned("n2", row.replicas, row.leader_epoch),)),)
    )
    PlannedOverlapWatch(_Nobody(), verdicts).see(world.state, decision, world.state)
    return verdicts


def test_moves_by_handoff_and_deaths_are_well() -> None:
    """A drain releases; of the dead, and of one whose new process was admitted, slots are taken."""
    world = world_with()
    world.start("n3")
    world.go(1_000)
    world.leave("n1", world.living["n1"])
    world.go(1_000)
    world.die("n3")
    world.go(4_000)
    world.start("n2")
    world.go(1_000)
    verdicts = seen(world.decisions)
    verdicts.require()
    assert verdicts.checked[RELEASES] > 0


def test_a_slot_that_is_taken_from_a_living_leader_breaks_the_promise() -> None:
    """It was told of nothing, and serves until it has read the table."""
    with pytest.raises(BrokenInvariantError, match=RELEASES):
        taken(world_with()).require()


def test_a_leader_that_releases_to_another_node_was_not_told_to_release_to_this_one() -> None:
    """Its clients would be sent to the wrong one."""
    world = world_with()
    world.holding.add("n1")
    world.start("n3")
    world.go(1_000)
    assert {handoff.next_leader for handoff in world.state.slots.handoffs.values() if handoff.releases} == {"n3"}
    with pytest.raises(BrokenInvariantError, match=RELEASES):
        taken(world).require()


@pytest.mark.parametrize(("hands_off", "slot_policy"), [(False, "minimal"), (True, "sofa")])
def test_what_takes_part_in_no_handoffs_moves_by_one_row(hands_off: bool, slot_policy: str) -> None:
    """Nodes of before handoffs, and policies that pace themselves."""
    taken(world_with(hands_off=hands_off, slot_policy=slot_policy)).require()

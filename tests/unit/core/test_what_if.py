"""What would happen is what then happens: the same code, before and after it is committed."""

from controlplane.core.events import IntentOutcome
from controlplane.core.records import Intent, NodeJoined, NodeLeaving, NodeRole
from controlplane.core.what_if import Change, Effect, NodeDies, effect_of, what_if
from tests.helpers.world import World


def supposed(world: World, *changes: Change) -> Effect:
    """The effect that these changes would have."""
    before = world.state
    effect = effect_of(*what_if(world.state, world.observations, changes))
    assert world.state == before
    return effect


def living_world() -> World:
    """A cluster of four nodes."""
    world = World()
    world.admit("n1", "n2", "n3", "n4")
    return world


def intent(kind: str, **arguments: str) -> Intent:
    """Something that an operator may ask for."""
    return Intent("i", kind, "tester", arguments)


def test_supposed_drain_is_what_the_drain_does() -> None:
    """Rows, numbers and counts agree with the decision that is then taken."""
    world = living_world()
    effect = supposed(world, intent("drain_node", node="n1"))
    before = world.state.slots
    world.ask("drain_node", node="n1")
    certificate = world.decisions[-1].certificate
    assert certificate is not None
    assert (effect.moved, effect.least_moved) == (certificate.moved, certificate.least_moved)
    assert (effect.leader_changes, effect.least_leader_changes) == (
        certificate.leader_changes,
        certificate.least_leader_changes,
    )
    assert [new for _, new in effect.rows] == [
        new for old, new in zip(before, world.state.slots, strict=True) if old != new
    ]
    counts = {count.node_id: count for count in effect.counts}
    assert (counts["n1"].held_before, counts["n1"].held_after, counts["n1"].led_after) == (8, 0, 0)
    assert counts["n2"].held_after == len(world.held("n2"))


def test_supposed_death_is_what_the_death_does() -> None:
    """The same for what nobody asks for."""
    world = living_world()
    effect = supposed(world, NodeDies("n4"))
    before = world.state.slots
    world.run(4_000, ("n1", "n2", "n3"))
    assert [new.replicas for _, new in effect.rows] == [
        new.replicas for old, new in zip(before, world.state.slots, strict=True) if old != new
    ]


def test_several_changes_are_taken_up_together() -> None:
    """A node that takes another's place moves less than both one after the other."""
    world = living_world()
    joined = NodeJoined("n5", 1, NodeRole.DATA, (), "", 1, 0, "", 0)
    effect = supposed(world, NodeLeaving("n1", 1, ""), joined)
    assert (effect.moved, effect.least_moved) == (8, 8)
    counts = {count.node_id: (count.held_before, count.held_after) for count in effect.counts}
    assert counts == {"n1": (8, 0), "n2": (8, 8), "n3": (8, 8), "n4": (8, 8), "n5": (0, 8)}


def test_supposed_split_counts_what_moves_after_it() -> None:
    """A part that stays where its slot is has not moved."""
    world = living_world()
    effect = supposed(world, intent("change_policy", slot_count="32"))
    assert (effect.moved, effect.rows) == (0, ())
    assert sum(count.led_after for count in effect.counts) == 32


def test_what_cannot_be_is_told() -> None:
    """Refused intents and impossible nodes have no effect, and are named."""
    world = living_world()
    effect = supposed(world, NodeDies("n9"), NodeLeaving("n8", 1, ""), intent("drain_node", node="n7"))
    assert effect.refusals == (
        "node 'n9' is unknown; known are n1, n2, n3, n4",
        "node 'n8' wants to leave and never joined",
    )
    assert [answer.outcome for answer in effect.answers] == [IntentOutcome.REFUSED]
    assert effect.rows == ()
    world.run(4_000, ("n1", "n2", "n3"))
    assert supposed(world, NodeDies("n4")).refusals == ("node 'n4' is fenced already",)


def test_nothing_supposed_is_a_plan_at_once() -> None:
    """In a table that is balanced it changes nothing, and proves it."""
    effect = supposed(living_world())
    assert (effect.moved, effect.least_moved, effect.rows) == (0, 0, ())


def test_paused_cluster_is_supposed_paused() -> None:
    """What would happen takes the pause into account."""
    world = living_world()
    world.ask("pause_reconciliation")
    assert supposed(world, intent("drain_node", node="n1")).rows == ()
    effect = supposed(world, intent("drain_node", node="n1"), Intent("j", "resume_reconciliation", "", {}))
    assert effect.moved == 8

"""What would happen is what then happens: the same code, before and after it is committed."""

from dataclasses import replace

from controlplane.config import INTENTS
from controlplane.core.cluster.events import FormerSilenceLimitEnded
from controlplane.core.cluster.policy import SILENCE_MARGIN_MS, ClusterPolicy
from controlplane.core.deciding.decide import decide
from controlplane.core.deciding.what_if import Change, Effect, NodeDies, effect_of, what_if
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.values.identifiers import Coordinates
from controlplane.core.values.inputs import InputRecord
from tests.helpers.sofa_fleet import SofaFleet
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
    before = world.state.slots.table
    world.ask("drain_node", node="n1")
    certificate = world.decisions[-1].certificate
    assert certificate is not None
    assert (effect.moved, effect.least_moved) == (certificate.moved, certificate.least_moved)
    assert (effect.leader_changes, effect.least_leader_changes) == (
        certificate.leader_changes,
        certificate.least_leader_changes,
    )
    assert [new for _, new in effect.rows] == [
        new for old, new in zip(before, world.state.slots.table, strict=True) if old != new
    ]
    counts = {count.node_id: count for count in effect.counts}
    assert (counts["n1"].held_before, counts["n1"].held_after, counts["n1"].led_after) == (8, 0, 0)
    assert counts["n2"].held_after == len(world.held("n2"))


def test_supposed_death_is_what_the_death_does() -> None:
    """The same for what nobody asks for."""
    world = living_world()
    effect = supposed(world, NodeDies("n4"))
    before = world.state.slots.table
    world.run(4_000, ("n1", "n2", "n3"))
    assert [new.replicas for _, new in effect.rows] == [
        new.replicas for old, new in zip(before, world.state.slots.table, strict=True) if old != new
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


def both(world: World, asked: Intent) -> Draft:
    """What an intent would do, which has to be what it does."""
    draft, _ = what_if(world.state, world.observations, [asked])
    record = InputRecord(Coordinates(INTENTS, 0, world.offsets[INTENTS, 0], world.now_ms), asked, b"")
    taken = decide(world.state, replace(world.observations, pending=(record,))).sealed
    assert taken is not None
    assert tuple(draft.events) == taken.decision.events
    assert draft.certificate == taken.decision.certificate
    return draft


NO_PLAN = intent("override_self_preservation")
"""Nothing is planned for its sake."""


def test_policy_that_is_asked_with_every_decision_is_asked_in_what_ifs() -> None:
    """Under ``sofa`` a tick goes with an answer to whatever intent."""
    fleet = SofaFleet(slot_count=16)
    fleet.join("a")
    fleet.run(2_000)
    fleet.join("b")
    fleet.join("c")
    drafts = []
    for _ in range(80):
        fleet.run(100)
        drafts.append(both(fleet.world, NO_PLAN))
    assert any(isinstance(event, SlotsAssigned) for draft in drafts for event in draft.events)


def test_plan_in_flight_goes_on_in_what_ifs() -> None:
    """The step that is due is taken along, as in every decision."""
    world = World(ClusterPolicy(slot_count=16, cool_down_ms=1_000))
    world.admit("n1", "n2", "n3")
    world.admit("n4")
    assert world.state.slots.plan is not None
    for _ in range(10):
        world.tick()
    world.observe()
    draft = both(world, NO_PLAN)
    assert CauseKind.PLAN_CONTINUED in {cause.kind for cause in draft.causes}
    assert draft.state.slots.plan is None


def test_former_silence_limit_ends_in_what_ifs() -> None:
    """What an operator asks for is answered by the limit that counts when it is decided."""
    world = World(ClusterPolicy(slot_count=16, silence_limit_ms=4_000))
    names = ("n1", "n2", "n3")
    world.admit(*names)
    world.ask("change_policy", silence_limit_ms="2000")
    world.run(4_000 + SILENCE_MARGIN_MS - 200, names)
    while not any(isinstance(event, FormerSilenceLimitEnded) for event in both(world, NO_PLAN).events):
        assert world.state.cluster.former_silence_limit is not None
        world.tick()
        world.observe()
    asked = intent("change_policy", silence_limit_ms="3000")
    assert "nodes are fenced after" not in effect_of(both(world, asked)).answers[0].detail


def test_join_of_a_living_node_is_refused() -> None:
    """It would be a restart, which nobody asked about: the sentence says how to ask about one."""
    world = living_world()
    joined = NodeJoined("n2", 2, NodeRole.DATA, (), "", 1, 0, "1", 0)
    effect = supposed(world, joined)
    assert effect.refusals == ("node 'n2' lives already; suppose first that it dies to see what a restart would do",)
    assert (effect.moved, effect.rows) == (0, ())


def test_restart_counts_what_has_to_be_copied_again() -> None:
    """What a new process of the name is given is new to it, also where the table shows the same name as before."""
    world = living_world()
    effect = supposed(world, NodeDies("n2"), NodeJoined("n2", 2, NodeRole.DATA, (), "", 1, 0, "1", 0))
    assert effect.refusals == ()
    assert effect.moved == effect.least_moved == 8
    assert effect.leader_changes == effect.least_leader_changes


def test_what_waits_for_the_pace_is_told_apart() -> None:
    """All that is planned, what of it would be done at once, and what would wait."""
    world = World(ClusterPolicy(slot_count=16, cool_down_ms=60_000))
    world.admit("n1", "n2", "n3")
    effect = supposed(world, NodeJoined("n4", 1, NodeRole.DATA, (), "", 1, 0, "1", 0))
    assert (effect.moved, effect.least_moved, effect.moved_now) == (8, 8, 0)
    assert effect.rows_waiting == len(effect.rows) > 0
    effect = supposed(world, intent("drain_node", node="n1"))
    assert effect.moved_now == effect.moved == effect.least_moved

"""What operators ask for the slot table: pins, exclusions, a new plan, a pause."""

import pytest

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.core.cluster.policy import ClusterPolicy, ZoneRule
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.decision import CauseKind
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.pins import Exclusion, Pin
from tests.helpers.asked_policy import AskedPolicy, asked_policies
from tests.helpers.logs import complaints_of
from tests.helpers.readme import ROOT
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED
NODES = ("n1", "n2", "n3")


def asked_world(**policy: object) -> tuple[World, AskedPolicy]:
    """A cluster of three nodes, and the policy that is asked for its plans."""
    asked = AskedPolicy()
    world = World(ClusterPolicy(**{"slot_count": 16, **policy}), asked_policies(asked))  # type: ignore[arg-type]  # by name
    world.admit(*NODES)
    return world, asked


def test_pins_are_asked_of_the_policy() -> None:
    """Pins stand in the state and in every request, until they are taken back."""
    world, policy = asked_world()
    answer = world.ask("pin_slots", slots="3,7-9", node="n1", leads="true")
    assert answer.outcome is DONE
    assert policy.last.pins == tuple(Pin(slot, "n1", leads=True) for slot in (3, 7, 8, 9))
    world.ask("pin_slots", slots="3", node="n1")
    assert policy.last.pins[0] == Pin(3, "n1", leads=False)
    world.ask("unpin_slots", slots="all", node="n1")
    assert (policy.last.pins, world.state.slots.pins) == ((), ())


def test_exclusions_are_asked_of_the_policy() -> None:
    """The same for slots that a node must not hold."""
    world, policy = asked_world()
    world.ask("exclude_slots", slots="0-1", node="n2")
    both = policy.last.exclusions
    assert both == (Exclusion(0, "n2"), Exclusion(1, "n2"))
    world.ask("include_slots", slots="1", node="n2")
    assert policy.last.exclusions == (Exclusion(0, "n2"),)


def test_orders_on_slots_are_kept_to() -> None:
    """Whatever joins and dies: a pinned node holds and leads its slots, an excluded one does not hold them."""
    world, _ = asked_world()
    world.ask("pin_slots", slots="3,7-9", node="n1", leads="true")
    world.ask("exclude_slots", slots="0-5", node="n2")
    world.admit("n4")
    world.run(4_000, ("n1", "n2", "n4"))
    assert {world.state.slots.table[slot].leader for slot in (3, 7, 8, 9)} == {"n1"}
    assert world.held("n2").isdisjoint(range(6))
    assert all(len(slot.replicas) == 2 for slot in world.state.slots.table)


def test_pin_of_a_dead_node_has_no_effect() -> None:
    """It is not asked for while the node does not live or drains, and is again when it is back."""
    world, policy = asked_world()
    world.ask("pin_slots", slots="3", node="n1")
    world.ask("drain_node", node="n1")
    while_draining = policy.last.pins
    assert while_draining == ()
    world.run(4_000, ("n2", "n3"))
    assert (policy.last.pins, world.state.slots.pins) == ((), (Pin(3, "n1"),))
    world.admit("n1")
    assert policy.last.pins == (Pin(3, "n1"),)


def test_pinned_node_is_excluded_and_its_pins_have_no_effect() -> None:
    """An exclusion is for emergencies: nobody has to look for pins first. The answer says what becomes of them."""
    world, policy = asked_world()
    world.ask("pin_slots", slots="3,7-9", node="n1", leads="true")
    answer = world.ask("exclude_node", node="n1")
    assert answer.outcome is DONE
    assert answer.detail == (
        "node 'n1' is excluded; its pins of slots 3, 7-9 have no effect until it is included again or they are unpinned"
    )
    assert (policy.last.pins, world.held("n1")) == ((), set())
    answer = world.ask("pin_slots", slots="4", node="n1")
    assert answer.outcome is DONE
    assert (
        answer.detail == "slot 4 is pinned to 'n1'; it is excluded: the pins have no effect until it is included again"
    )
    assert policy.last.pins == ()
    assert "no effect" not in world.ask("include_node", node="n1").detail
    assert {3, 4, 7, 8, 9} <= world.held("n1")
    assert complaints_of(world.decisions) == []


def test_drained_node_says_that_its_pins_have_no_effect() -> None:
    """The same as for an exclusion."""
    world, _ = asked_world()
    world.ask("pin_slots", slots="3", node="n1")
    answer = world.ask("drain_node", node="n1")
    assert answer.detail.endswith("; its pins of slot 3 have no effect until it is undrained or they are unpinned")
    assert world.ask("pin_slots", slots="4", node="n1").detail.endswith(
        "; it drains: the pins have no effect until it is undrained"
    )
    assert "no effect" not in world.ask("drain_node", node="n2").detail


def test_dead_node_may_be_pinned() -> None:
    """Somebody prepares for its return."""
    world, _ = asked_world()
    world.run(4_000, ("n2", "n3"))
    assert "have no effect until it joins" in world.ask("pin_slots", slots="3", node="n1").detail


REFUSALS = {
    "an unknown node": ([], ("pin_slots", "3", "n9"), "node 'n9' is unknown; known are n1, n2, n3"),
    "an unknown slot": ([], ("pin_slots", "3,16", "n1"), "slot 16 is unknown; known are 0 to 15"),
    "no slots": ([], ("pin_slots", "few", "n1"), "write numbers and ranges"),
    "a range backwards": ([], ("exclude_slots", "9-3", "n1"), "runs backwards"),
    "more pins than replicas": (
        [("pin_slots", "3", "n1"), ("pin_slots", "3", "n2")],
        ("pin_slots", "2-3", "n3"),
        "slot 3 cannot have 3 pins: replica_count is 2",
    ),
    "a pin on an excluded pair": (
        [("exclude_slots", "3", "n1")],
        ("pin_slots", "3", "n1"),
        "slot 3 cannot be pinned to 'n1' and excluded from it at once",
    ),
    "an exclusion of a pinned pair": (
        [("pin_slots", "3", "n1")],
        ("exclude_slots", "0-5", "n1"),
        "slot 3 cannot be pinned to 'n1' and excluded from it at once",
    ),
    "unpinning a name with a typing error": (
        [("pin_slots", "3-5", "n1")],
        ("unpin_slots", "3", "m1"),
        "none of these slots is pinned to 'm1'; pinned are slots 3-5",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_contradictions_are_refused(case: str) -> None:
    """Each with the reason, and without any effect."""
    before, last, detail = REFUSALS[case]
    world, _ = asked_world()
    for kind, slots, node in before:
        assert world.ask(kind, node=node, **({"slots": slots} if slots else {})).outcome is DONE
    pins, exclusions, orders = world.state.slots.pins, world.state.slots.exclusions, world.state.membership.orders
    kind, slots, node = last
    answer = world.ask(kind, node=node, **({"slots": slots} if slots else {}))
    assert answer.outcome is REFUSED
    assert detail in answer.detail
    assert (world.state.slots.pins, world.state.slots.exclusions, world.state.membership.orders) == (
        pins,
        exclusions,
        orders,
    )


def test_two_leaders_of_a_slot_are_refused() -> None:
    """A slot has one leader."""
    world, _ = asked_world()
    world.ask("pin_slots", slots="3", node="n1", leads="true")
    answer = world.ask("pin_slots", slots="3", node="n2", leads="true")
    assert (answer.outcome, answer.detail) == (REFUSED, "slot 3 cannot be led by n1 and n2 at once")
    assert world.ask("pin_slots", slots="3", node="n2").outcome is DONE


def test_hard_zones_are_not_overfilled() -> None:
    """Neither by a pin, nor by a zone that an operator gives, nor by a policy that makes zones hard."""
    world, _ = asked_world(zone_rule=ZoneRule.HARD)
    world.ask("set_node", node="n1", zone="a")
    world.ask("pin_slots", slots="3", node="n1")
    world.ask("pin_slots", slots="3", node="n2")
    expected = "slot 3 cannot have 2 pins in zone 'a', which may hold 1"
    assert world.ask("set_node", node="n2", zone="a").detail == expected
    assert world.ask("change_policy", zone_rule="soft").outcome is DONE
    assert world.ask("set_node", node="n2", zone="a").outcome is DONE
    assert world.ask("change_policy", zone_rule="hard").detail == expected


def test_session_node_is_not_pinned() -> None:
    """It holds no slots."""
    world, _ = asked_world()
    world.join("s1", role=NodeRole.SESSION)
    world.run(400)
    assert "that node is no data node" in world.ask("pin_slots", slots="3", node="s1").detail


def test_refresh_plans_and_writes_every_row() -> None:
    """The epoch rises although nothing changes; the request says that an operator asked."""
    world, policy = asked_world()
    epoch, asked = world.state.epoch, len(policy.requests)
    answer = world.ask("refresh_table")
    assert (answer.outcome, world.state.epoch) == (DONE, epoch + 1)
    assert policy.last.refresh
    assert len(policy.requests) > asked
    assert CauseKind.TABLE_REPUBLISHED in {cause.kind for cause in world.decisions[-1].causes}
    world.ask("drain_node", node="n1")
    assert not policy.last.refresh


def test_pause_lets_nothing_move() -> None:
    """Joins, drains and weights wait; the answer of a drain says so. On resume it is planned."""
    world, policy = asked_world()
    world.ask("pause_reconciliation", reason="migration")
    slots, asked = world.state.slots.table, len(policy.requests)
    world.admit("n4")
    assert "stay until reconciliation is resumed" in world.ask("drain_node", node="n1").detail
    world.ask("set_node", node="n2", weight="5")
    world.ask("refresh_table")
    assert (world.state.slots.table, len(policy.requests), world.state.slots.paused) == (slots, asked, True)
    assert world.ask("resume_reconciliation").outcome is DONE
    assert (world.held("n1"), world.state.slots.paused) == (set(), False)
    assert world.held("n4")


def test_dead_own_nothing_during_a_pause() -> None:
    """A dead node's slots are led by who survives; what nobody survived stays empty until it is resumed."""
    world, _ = asked_world()
    world.ask("pause_reconciliation")
    before = world.state.slots.table
    world.run(4_000, ("n2", "n3"))
    assert world.held("n1") == set()
    for old, new in zip(before, world.state.slots.table, strict=True):
        assert set(new.replicas) == set(old.replicas) - {"n1"}
        assert new.leader_epoch == (world.state.epoch if old.leader == "n1" else old.leader_epoch)
    world.left("n2")
    world.left("n3")
    world.run(200)
    assert {slot.leader for slot in world.state.slots.table} == {None}
    world.admit("n5")
    assert world.held("n5") == set()
    world.ask("resume_reconciliation")
    assert len(world.held("n5")) == 16


def test_new_process_holds_nothing_during_a_pause() -> None:
    """It does not have what the former process of its name held."""
    world, _ = asked_world()
    world.ask("pause_reconciliation")
    world.join("n1", incarnation=2)
    world.run(400)
    assert world.held("n1") == set()


def test_policy_that_keeps_dead_holders_is_frozen_wholly() -> None:
    """Where rows name the dead anyhow until the next plan, a pause changes none of them; nobody dies here."""
    policy = AskedPolicy(dead_may_hold=True)
    world = World(slot_policies=asked_policies(policy))
    world.admit(*NODES)
    world.ask("pause_reconciliation")
    world.ask("drain_node", node="n1")
    assert not [event for event in world.decisions[-1].events if isinstance(event, SlotsAssigned)]


def test_bundles_go_on_during_a_pause() -> None:
    """A pause is about slots."""
    world, _ = asked_world()
    world.ask("create_namespace", namespace="kv")
    world.ask("pause_reconciliation")
    world.ask("drain_node", node="n1")
    assert "n1" not in {bundle.owner for bundle in world.state.bundles.by_id.values()}


def test_orders_that_the_slot_policy_does_not_look_at_are_told_so() -> None:
    """Under ``sofa`` a pin stands and does nothing; whole nodes are excluded and drained all the same."""
    world = World(ClusterPolicy(slot_count=16, slot_policy="sofa"))
    world.admit(*NODES)
    ignored = "; slot policy 'sofa' does not look at "
    assert world.ask("pin_slots", slots="3", node="n1").detail.endswith(ignored + "pins")
    assert world.ask("pin_slots", slots="3", node="n1").detail.endswith("already" + ignored + "pins")
    assert world.ask("exclude_slots", slots="4", node="n1").detail.endswith(ignored + "exclusions of slots")
    assert world.ask("set_node", node="n2", weight="2").detail.endswith(ignored + "weights")
    assert world.ask("set_node", node="n2", weight="3", zone="a").detail.endswith(ignored + "weights and zones")
    for kind in ("exclude_node", "drain_node"):
        assert "look at" not in world.ask(kind, node="n3").detail
    assert "does not look at" not in world.ask("change_policy", slot_policy="minimal").detail
    assert "look at" not in world.ask("pin_slots", slots="3", node="n2").detail


def test_policy_that_does_not_say_what_it_looks_at_is_held_to_look_at_nothing() -> None:
    """A policy of somebody's own has to claim that pins count before an operator is told so."""
    policies = load_slot_policies([ROOT / "examples" / "slot_policies" / "zoned_rendezvous.py"])
    world = World(ClusterPolicy(slot_count=16, slot_policy="zoned-rendezvous"), policies)
    world.admit(*NODES)
    assert "look at" not in world.ask("set_node", node="n2", weight="2").detail
    assert world.ask("pin_slots", slots="3", node="n1").detail.endswith("'zoned-rendezvous' does not look at pins")


def test_change_to_a_slot_policy_says_what_stands_and_will_not_count() -> None:
    """Nothing is dropped without a word."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit(*NODES)
    assert "look at" not in world.ask("change_policy", slot_policy="sofa").detail
    world.ask("change_policy", slot_policy="minimal")
    world.ask("pin_slots", slots="3,7", node="n1")
    world.ask("exclude_slots", slots="4", node="n1")
    world.ask("set_node", node="n2", weight="2", zone="a")
    world.ask("set_node", node="n3", weight="2")
    answer = world.ask("change_policy", slot_policy="sofa")
    assert answer.detail.endswith(
        "; slot policy 'sofa' does not look at what stands: pins of slots 3, 7; exclusions of slot 4; "
        "weights of n2, n3; zones of n2"
    )
    assert "look at" not in world.ask("change_policy", replica_count="3").detail


def test_one_slot_is_not_called_slots() -> None:
    """Answers are sentences."""
    world, _ = asked_world()
    assert (
        world.ask("pin_slots", slots="5", node="n1", leads="true").detail == "slot 5 is pinned to 'n1', which leads it"
    )
    assert (
        world.ask("unpin_slots", slots="0-9", node="m9").detail
        == "none of these slots is pinned to 'm9'; pinned is slot 5"
    )
    assert world.ask("unpin_slots", slots="5", node="n1").detail == "slot 5 is no longer pinned to 'n1'"
    assert world.ask("exclude_slots", slots="10", node="n1").detail == "'n1' does not hold slot 10"
    assert world.ask("include_slots", slots="10", node="n1").detail == "'n1' may hold slot 10 again"
    answer = world.ask("include_slots", slots="10", node="m9").detail
    assert answer == "'m9' is excluded from none of these slots; excluded are none"

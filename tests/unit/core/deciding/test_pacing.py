"""Plans are carried out at the pace that operators choose; emergencies never wait, and everything stays provable."""

import json
import random

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.state import State
from controlplane.core.slots.events import PlanDropped, PlanMade, ReplicasLeft
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.values.canonical import from_canonical, to_canonical
from tests.helpers.logs import complaints_of
from tests.helpers.paced_worlds import carry_on, fourth_joins, look, moved, moves_of, paced_world, report, start
from tests.helpers.world import World


def test_a_plan_goes_on_as_its_moves_get_ready_and_ends_where_it_would_have_at_once() -> None:
    """Never more moves in flight than the budget; the steps name the plan; the table is the one that was proven."""
    world, at_once = paced_world(moves_in_flight=2), paced_world()
    for each in (world, at_once):
        start(each, "n1", "n2", "n3")
        fourth_joins(each)
    before = world.state.slots.table
    first = look(world)
    look(at_once)
    assert first is not None
    assert first.certificate is not None
    assert first.certificate.moved == moved(before, at_once.state.slots.table) == 8
    assert moves_of(first, before) <= 2
    plan = world.state.slots.plan
    assert plan is not None
    for _ in range(3):  # nobody is ready in what it got: nothing more moves
        report(world, "n1", "n2", "n3")
        report(world, "n4", ready=False)
        assert look(world) is None
    steps = carry_on(world, "n1", "n2", "n3", "n4")
    assert world.state.slots.plan is None
    assert world.state.slots.planned == {}
    assert [(slot.leader, slot.followers) for slot in world.state.slots.table] == [
        (slot.leader, slot.followers) for slot in at_once.state.slots.table
    ]
    for step in steps:
        assert [(cause.kind, cause.subject) for cause in step.causes] == [(CauseKind.PLAN_CONTINUED, str(first.seq))]
        assert step.certificate is None
    assert steps[-1].causes[0].evidence.endswith("0 left")
    assert complaints_of(world.decisions) == []


def test_a_death_does_not_wait_for_the_plan_in_flight() -> None:
    """What the dead held gets its row at once; a new plan takes the place of what was left."""
    world = paced_world(moves_in_flight=1)
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    look(world)
    plan = world.state.slots.plan
    assert plan is not None
    decision = None
    for _ in range(35):
        report(world, "n2", "n3", "n4", ready=False)
        decision = look(world)
        if decision is not None and decision.certificate is not None:
            break
    assert decision is not None
    assert any(cause.kind is CauseKind.NODE_EXPIRED for cause in decision.causes)
    assert PlanDropped(plan.plan_id, "a new plan takes its place") in decision.events
    assert world.held("n1") == set()
    assert all(len(slot.replicas) == 2 for slot in world.state.slots.table)
    carry_on(world, "n2", "n3", "n4")
    assert world.state.slots.plan is None
    assert complaints_of(world.decisions) == []


def test_nothing_but_emergencies_is_carried_out_during_the_cool_down() -> None:
    """A join changes nothing until the cool-down is over; then all of it is done at once."""
    world = paced_world(cool_down_ms=1_000)
    start(world, "n1", "n2", "n3")
    epoch = world.state.epoch
    fourth_joins(world)
    first = look(world)
    assert first is not None
    assert first.certificate is not None
    assert world.held("n4") == set()
    decided = [look(world) for _ in range(9)]
    assert decided == [None] * 9
    done = look(world)
    assert done is not None
    assert world.state.slots.plan is None
    assert len(world.held("n4")) == 8
    assert world.state.epoch > epoch
    assert complaints_of(world.decisions) == []


def test_a_replica_does_not_come_back_within_the_window() -> None:
    """Weights that go to and fro: what the first change took away comes back when the window is over, not before."""
    world = paced_world(return_window_ms=5_000)
    start(world, "n1", "n2", "n3", "n4")
    first = world.state.slots.table
    assert world.ask("set_node", node="n1", weight="3").outcome.value == "done"
    taken_ms = world.now_ms
    middle = world.state.slots.table
    assert moved(first, middle) > 0
    assert world.ask("set_node", node="n1", weight="1").outcome.value == "done"
    wanted = world.state.slots.plan
    assert wanted is not None
    left = {(each.slot_id, each.node_id) for each in world.state.slots.departures if each.left_at_ms == taken_ms}
    while world.now_ms + 100 < taken_ms + 5_000:
        report(world, "n1", "n2", "n3", "n4")
        look(world)
        back = {
            (slot.slot_id, name)
            for slot, old in zip(world.state.slots.table, middle, strict=True)
            for name in set(slot.replicas) - set(old.replicas)
        }
        assert not back & left
    carry_on(world, "n1", "n2", "n3", "n4")
    assert world.state.slots.plan is None
    assert sorted(len(world.held(name)) for name in ("n1", "n2", "n3", "n4")) == [8, 8, 8, 8]
    assert complaints_of(world.decisions) == []


def test_a_pause_drops_the_plan_and_a_resume_makes_a_new_one() -> None:
    """What is planned is not carried out behind an operator's back."""
    world = paced_world(moves_in_flight=1)
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    look(world)
    plan = world.state.slots.plan
    assert plan is not None
    world.ask("pause_reconciliation")
    assert world.state.slots.plan is None
    slots = world.state.slots.table
    for _ in range(5):
        report(world, "n1", "n2", "n3", "n4")
        look(world)
    assert world.state.slots.table == slots
    world.ask("resume_reconciliation")
    carry_on(world, "n1", "n2", "n3", "n4")
    assert len(world.held("n4")) == 8
    assert complaints_of(world.decisions) == []


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("refresh_table", {}), ("change_policy", {"moves_in_flight": "0"})],
    ids=["refresh", "budget"],
)
def test_an_operator_can_have_it_all_at_once(kind: str, arguments: dict[str, str]) -> None:
    """A refresh waits for nothing; a policy that changes while a plan is in flight makes a new plan under new rules."""
    world = paced_world(moves_in_flight=1)
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    look(world)
    plan = world.state.slots.plan
    assert plan is not None
    assert world.ask(kind, **arguments).outcome.value == "done"
    assert world.state.slots.plan is None
    assert len(world.held("n4")) == 8
    assert complaints_of(world.decisions) == []


def test_nodes_that_never_speak_of_slots_are_not_waited_for() -> None:
    """A producer of bare heartbeats that does not read the table is believed to be in order."""
    world = paced_world(moves_in_flight=1)
    world.admit("n1", "n2", "n3")
    world.admit("n4")
    world.run(3_000, ("n1", "n2", "n3", "n4"))
    assert world.state.slots.plan is None
    assert len(world.held("n4")) == 8


def test_first_placement_is_an_emergency() -> None:
    """Slots without any holder are not kept waiting by a budget."""
    world = paced_world(moves_in_flight=1, cool_down_ms=60_000)
    start(world, "n1", "n2", "n3")
    assert all(len(slot.replicas) == 2 for slot in world.state.slots.table)


def test_paced_plans_of_random_histories_are_provable_and_end_balanced() -> None:
    """Joins, weights, drains and deaths under a small budget, with nodes that get ready when they like."""
    for seed in range(12):
        choose = random.Random(seed)
        world = paced_world(
            moves_in_flight=choose.choice((1, 3)),
            cool_down_ms=choose.choice((0, 500)),
            return_window_ms=choose.choice((0, 2_000)),
        )
        names = ["n1", "n2", "n3", "n4", "n5"]
        start(world, *names[:3])
        for _ in range(12):
            name = choose.choice(names)
            match choose.choice(("join", "weigh", "drain", "die", "nothing")):
                case "join" if not (known := world.state.membership.nodes.get(name)) or not known.lives:
                    world.join(name, incarnation=world.now_ms)
                case "weigh":
                    world.ask("set_node", node=name, weight=str(choose.randint(1, 3)))
                case "drain" if name in world.state.membership.nodes:
                    world.ask(choose.choice(("drain_node", "undrain_node")), node=name)
                case "die" if sum(node.lives for node in world.state.membership.nodes.values()) > 3:
                    node = world.state.membership.nodes.get(name)
                    if node is not None and node.lives:
                        world.left(name, node.incarnation)
                case _:
                    pass
            for _ in range(choose.randint(1, 6)):
                living = [each for each, node in world.state.membership.nodes.items() if node.lives]
                report(world, *(each for each in living if choose.random() < 0.8), ready=choose.random() < 0.8)
                look(world)
        for _ in range(150):
            report(world, *(each for each, node in world.state.membership.nodes.items() if node.lives))
            look(world)
        assert world.state.slots.plan is None
        assert complaints_of(world.decisions) == []
        again = world.ask("refresh_table")
        assert again.outcome.value == "done"
        certificate = world.decisions[-1].certificate
        assert certificate is not None
        assert certificate.moved == 0, "the paced plans ended where nothing has to move"


def test_departures_are_noted_only_where_a_window_asks_for_them() -> None:
    """Nothing is written for nobody."""
    world = paced_world(return_window_ms=0)
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    decision = look(world)
    assert decision is not None
    assert not any(isinstance(event, ReplicasLeft | PlanMade) for event in decision.events)


class Impatient(MinimalPolicy):
    """Wants to be asked ten times a second of log time."""

    interval_ms = 100


def test_a_policy_with_an_interval_lets_its_plan_be_finished() -> None:
    """Asked again and again it would begin the cool-down anew each time, and nothing would ever be balanced."""
    world = World(ClusterPolicy(slot_count=16, join_linger_ms=0, cool_down_ms=1_000), {"minimal": Impatient()})
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    look(world)
    plan = world.state.slots.plan
    assert plan is not None
    for _ in range(9):
        look(world)
        assert world.state.slots.plan == plan
    look(world)
    assert world.state.slots.plan is None
    assert len(world.held("n4")) == 8


def test_a_snapshot_holds_a_plan_in_flight() -> None:
    """Its rows come back as they were, through JSON."""
    world = paced_world(cool_down_ms=60_000)
    start(world, "n1", "n2", "n3")
    fourth_joins(world)
    look(world)
    assert world.state.slots.plan is not None
    assert from_canonical(State, json.loads(json.dumps(to_canonical(world.state)))) == world.state

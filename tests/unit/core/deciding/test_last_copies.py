"""Nobody is relieved of the last copy of a slot that no other node may hold."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.decision import CauseKind
from controlplane.core.slots.answers import ask
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pins import Exclusion
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.survivors import stranded_slots
from controlplane.core.slots.table import Slot
from controlplane.inspection.table_status import table_status
from tests.helpers.asked_policy import AskedPolicy
from tests.helpers.logs import complaints_of, resealed
from tests.helpers.world import World


def stranded_world(**settings: Any) -> World:  # noqa: ANN401 - fields of the policy
    """Slot 6 may be held by n2 and n3 alone of the living: n1 is excluded from it, n4 is dead, n2 drains."""
    world = World(ClusterPolicy(slot_count=16, **settings))
    world.admit("n1", "n2", "n3", "n4")
    world.ask("exclude_slots", slots="6", node="n1")
    world.run(4_000, ("n1", "n2", "n3"))
    world.ask("drain_node", node="n2")
    assert world.state.slots.table[6].replicas == ("n3",)
    return world


def test_last_copy_stays_where_it_is() -> None:
    """The drain takes everything else; who comes back holds the slot beside or after who had it."""
    world = stranded_world()
    answer = world.ask("drain_node", node="n3")
    assert "it keeps slot 6: no other node may hold it" in answer.detail
    assert world.held("n3") == {6}
    assert world.state.slots.table[6].leader == "n3"
    certificate = world.decisions[-1].certificate
    assert certificate is not None
    assert certificate.shortfalls == (
        "slot 6 stays on 'n3', which is to be relieved of it: no other node may hold it",
        "15 slots have 1 of 2 replicas: no more fit on 1 node",
    )
    assert certificate.lost_slots == ()
    assert table_status(world.state, world.observations).shortfalls == certificate.shortfalls
    world.ask("undrain_node", node="n2")
    assert world.state.slots.table[6].leader == "n2"
    assert complaints_of(world.decisions) == []


def test_exclusion_of_the_last_holder_says_that_it_stays() -> None:
    """An exclusion of the slot is no other order than a drain of its holder."""
    world = stranded_world()
    answer = world.ask("exclude_slots", slots="6", node="n3")
    assert answer.outcome is IntentOutcome.DONE
    assert "it keeps slot 6: no other node may hold it" in answer.detail
    assert world.held("n3") >= {6}
    assert complaints_of(world.decisions) == []


def test_exclusion_of_the_node_says_that_it_keeps_the_last_copy() -> None:
    """The same for a node that is excluded from everything."""
    world = stranded_world()
    assert "it keeps slot 6: no other node may hold it" in world.ask("exclude_node", node="n3").detail
    assert world.held("n3") == {6}
    assert complaints_of(world.decisions) == []


def test_holder_that_dies_leaves_the_slot_to_the_other_one() -> None:
    """Of those that are to be relieved a survivor leads, as while reconciliation is paused."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1", "n2", "n3")
    world.ask("exclude_slots", slots="all", node="n1")
    world.intent("first", "drain_node", node="n2")
    world.ask("drain_node", node="n3")
    assert all(set(slot.replicas) == {"n2", "n3"} for slot in world.state.slots.table)
    world.run(4_000, ("n1", "n2"))
    assert all(slot.replicas == ("n2",) for slot in world.state.slots.table)
    world.join("n2", incarnation=2)
    world.run(400)
    assert world.state.slots.table[6].replicas == ("n2",)
    assert complaints_of(world.decisions) == []


def test_many_last_copies_are_told_in_one_sentence() -> None:
    """One for all slots that stay on the same nodes."""
    world = World(ClusterPolicy(slot_count=16, replica_count=1))
    world.admit("n1", "n2")
    world.ask("exclude_slots", slots="all", node="n1")
    answer = world.ask("drain_node", node="n2")
    assert "it keeps slots 0, 1, 2, 3, 4, 5, 6, 7 and 8 more: no other node may hold them" in answer.detail
    certificate = world.decisions[-1].certificate
    assert certificate is not None
    slots = "slots 0, 1, 2, 3, 4, 5, 6, 7 and 8 more"
    sentence = f"{slots} stay on 'n2', which is to be relieved of them: no other node may hold them"
    assert certificate.shortfalls == (sentence,)
    assert complaints_of(world.decisions) == []


def test_verification_refuses_a_log_that_empties_such_a_slot() -> None:
    """It finds out by itself which slots have to stay."""
    world = stranded_world()
    world.ask("drain_node", node="n3")
    last = world.decisions[-1]
    row = world.state.slots.table[6]
    emptied = replace(row, leader=None, leader_epoch=last.epoch)

    def forged(event: object) -> object:
        return replace(event, slots=(*event.slots, emptied)) if isinstance(event, SlotsAssigned) else event

    decision = replace(last, events=tuple(map(forged, last.events)))  # type: ignore[arg-type]  # the same kinds
    found = complaints_of(resealed([*world.decisions[:-1], decision]))
    assert any("slot 6, which no other node may hold: held by [], ['n3'] survive" in each for each in found)


def test_verification_refuses_moves_where_nothing_can_move() -> None:
    """Where every slot has to stay, the certificate has nothing to tell."""
    world = World(ClusterPolicy(slot_count=16, replica_count=1))
    world.admit("n1", "n2")
    world.ask("exclude_slots", slots="all", node="n1")
    world.ask("drain_node", node="n2")
    last = world.decisions[-1]
    assert last.certificate is not None
    forged = replace(last, certificate=replace(last.certificate, moved=1))
    found = complaints_of(resealed([*world.decisions[:-1], forged]))
    assert any("it reports moves, but no node may be given a slot" in each for each in found)


def test_verification_refuses_that_a_policy_without_proofs_takes_a_last_copy() -> None:
    """Whatever a policy of somebody's own decides, a slot that a living node has is not left to nobody."""
    policies = {**BUILT_IN_POLICIES, "mine": AskedPolicy("mine")}
    world = World(ClusterPolicy(slot_count=16, slot_policy="mine"), policies)
    world.admit("n1", "n2")
    world.ask("drain_node", node="n1")
    assert complaints_of(world.decisions, policies) == []
    last = world.decisions[-1]

    def forged(event: object) -> object:
        if not isinstance(event, SlotsAssigned):
            return event
        rows = (replace(slot, leader=None, leader_epoch=last.epoch) for slot in event.slots)
        return replace(event, slots=tuple(rows))

    decision = replace(last, events=tuple(map(forged, last.events)))  # type: ignore[arg-type]  # the same kinds
    found = complaints_of(resealed([*world.decisions[:-1], decision]), policies)
    assert any("slot 6 is left without a holder, although ['n1', 'n2'] have its data" in each for each in found)


class Emptying(SlotPolicy):
    """A user's policy that gives every slot to nobody."""

    name = "emptying"

    def check_options(self, options: Mapping[str, str]) -> None:
        """Any."""

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """Empty rows."""
        return SlotAnswer(tuple(slot.assigned(None, (), request.epoch) for slot in request.held))


def test_policy_that_empties_a_slot_is_refused() -> None:
    """A policy of somebody's own takes no last copy either."""
    request = SlotRequest(
        slots=(Slot(0, "n1", (), 1),),  # type: ignore[arg-type]  # epochs are numbers
        nodes=(PlacementNode("n1", 0, 0), PlacementNode("n2", 1, 0)),
        renewed=frozenset(),
        policy=ClusterPolicy(slot_count=1),
        epoch=2,  # type: ignore[arg-type]
        now_ms=0,
    )
    answer, refusal = ask(Emptying(), request)
    assert refusal == "slot 0 is left to nobody, although 'n1' has its data"
    assert answer.slots == ()


def test_user_policy_that_empties_slots_harms_nobody_in_a_cluster() -> None:
    """The refusal stands in the log, the table as it was, and the verification agrees."""
    policies = {**BUILT_IN_POLICIES, "emptying": Emptying()}
    world = World(ClusterPolicy(slot_count=16), policies)
    world.admit("n1", "n2")
    world.ask("change_policy", slot_policy="emptying")
    assert any(cause.kind is CauseKind.PLACEMENT_REFUSED for cause in world.decisions[-1].causes)
    assert all(slot.replicas for slot in world.state.slots.table)
    assert complaints_of(world.decisions, policies) == []


@pytest.mark.parametrize(
    ("owners", "exclusions", "stranded"),
    [
        ({"n2"}, (), []),
        ({"n2"}, ((0, "n2"),), [0]),
        ({"n2", "n3"}, ((0, "n2"),), []),
        ({"n2", "n3"}, ((0, "n2"), (0, "n3"), (0, "n9")), [0]),
        ((), (), [0]),
        ({"n2"}, ((1, "n2"),), []),
    ],
)
def test_what_is_stranded(owners: set[str], exclusions: tuple[tuple[int, str], ...], stranded: list[int]) -> None:
    """Slots with a living holder and without anybody to whom they may be given."""
    slots = (Slot(0, "n1", (), 1), Slot(1, "gone", (), 1), Slot(2, None, (), 0))  # type: ignore[arg-type]
    found = stranded_slots(slots, {"n1", "n2", "n3"}, owners, [Exclusion(*each) for each in exclusions])
    assert [slot.slot_id for slot in found] == stranded


def test_orders_never_take_a_last_copy_in_random_histories() -> None:
    """Drains, exclusions of nodes and slots, joins and deaths: only deaths empty a slot, and every log is provable."""
    for seed in range(10):
        choose = random.Random(seed)
        replica_count = choose.choice((1, 2))
        world = World(ClusterPolicy(slot_count=8, replica_count=replica_count, join_linger_ms=0))
        names = ("n1", "n2", "n3", "n4")
        world.admit(*names[:3])
        for _ in range(25):
            name, slots = choose.choice(names), f"0-{choose.randrange(8)}"
            node = world.state.membership.nodes.get(name)
            before = world.state.slots.table
            for each, known in world.state.membership.nodes.items():
                world.heartbeat(each, known.incarnation)
            match choose.choice(("drain", "undrain", "exclude", "include", "bar", "allow", "bar", "drain", "end")):
                case "end" if node is not None and node.lives:
                    world.left(name, node.incarnation)
                case "end":
                    world.join(name, world.now_ms)
                case "bar":
                    world.ask("exclude_slots", slots=slots, node=name)
                case "allow":
                    world.ask("include_slots", slots=slots, node=name)
                case kind:
                    world.ask(f"{kind}_node", node=name)
            world.tick()
            world.decide()
            for old, new in zip(before, world.state.slots.table, strict=True):
                assert new.replicas or not any(world.state.membership.nodes[holder].lives for holder in old.replicas)
        assert complaints_of(world.decisions) == []

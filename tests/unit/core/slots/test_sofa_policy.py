"""The slot policy ``sofa`` beside what the cluster's histories show: options, refusals, refreshes, notes, the dead."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import decide
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.state import State
from controlplane.core.slots.answers import ask
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policies.sofa import SofaOptions, SofaPolicy, sofa_options
from controlplane.core.slots.policies.sofa_memory import remembered, rows, sofa_table
from controlplane.core.slots.policy_contract import SlotAnswer, SlotRequest
from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaSlot, SofaTable
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.canonical import from_canonical, to_canonical
from controlplane.core.values.identifiers import Epoch, Seq
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.core.verification.invariants import check, check_step
from controlplane.errors import ConfigurationError, InvariantViolationError
from tests.helpers.sofa_fleet import SofaFleet
from tests.helpers.states import with_image, with_table

EMPTY = empty_table(4)


def request(
    slots: tuple[Slot, ...] = EMPTY,
    names: str = "abc",
    options: Mapping[str, str] | None = None,
    replicas: int = 2,
    **more: object,
) -> SlotRequest:
    """A question about four slots."""
    policy = ClusterPolicy(slot_count=4, replica_count=replicas, slot_policy="sofa", slot_policy_options=options or {})
    nodes = tuple(PlacementNode(name, 1, 0) for name in names)
    return SlotRequest(slots, nodes, frozenset(), policy, Epoch(8), 0, **more)  # type: ignore[arg-type]


def with_answer(asked: SlotRequest, answer: SlotAnswer) -> tuple[tuple[Slot, ...], dict[str, str]]:
    """The table and the memory after an answer."""
    changed = {slot.slot_id: slot for slot in answer.slots}
    memory = {**asked.memory, **answer.remembered}
    return (
        tuple(changed.get(slot.slot_id, slot) for slot in asked.held),
        {name: value for name, value in memory.items() if value is not None},
    )


def test_options_have_sofaregistrys_names_and_defaults() -> None:
    """What an operator does not choose is as it is there."""
    assert sofa_options({}) == SofaOptions(10, 6, 10, 0, 180_000)
    chosen = {"threshold_percent": "0", "max_leader_moves": "1", "protected_nodes": "3", "max_sync_gap_ms": "9"}
    assert sofa_options(chosen) == SofaOptions(0, 1, 10, 3, 9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"treshold": "5"}, "slot_policy_options.treshold: sofa knows threshold_percent, max_leader_moves"),
        ({"threshold_percent": "101"}, "threshold_percent is '101': take a whole number between 0 and 100"),
        ({"threshold_percent": "-1"}, "is '-1': take a whole number between 0 and 100"),
        ({"max_leader_moves": "0"}, "max_leader_moves is '0': take a whole number from 1 on"),
        ({"protected_nodes": "two"}, "protected_nodes is 'two': take a whole number from 0 on"),
        ({"protected_nodes": "9" * 5_000}, "take a whole number from 0 on, with at most 18 digits"),
        ({"max_sync_gap_ms": "1.5"}, "max_sync_gap_ms is '1.5': take a whole number from 1 on"),
    ],
)
def test_options_that_cannot_be_used_are_named(options: dict[str, str], sentence: str) -> None:
    """A misspelt option that counted for nothing would be found out when it matters."""
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        SofaPolicy().check_options(options)


def test_rows_and_memory_give_the_table_back() -> None:
    """Nothing is remembered twice: what a row says already has no entry."""
    before = SofaTable(40, {0: SofaSlot(0, "a", 39, ("c", "b")), 1: SofaSlot(1, "b", 12, ("a",))})
    after = SofaTable(44, {0: SofaSlot(0, "a", 39, ("c", "b")), 1: SofaSlot(1, "c", 41, ("a",))})
    slots = (Slot(0, "a", ("b", "c"), Epoch(5)), Slot(1, "b", ("a",), Epoch(12)))
    memory = {name: text for name, text in remembered(before, slots, {}, Epoch(12)).items() if text is not None}
    assert memory == {"table": "[40,12]", "slot/0": '[39,"c","b"]'}
    assert sofa_table(slots, memory, Epoch(13)) == before
    made = rows(after, slots, Epoch(14))
    assert made == (slots[0], Slot(1, "c", ("a",), Epoch(14)))
    assert remembered(after, made, memory, Epoch(14)) == {"table": "[44,14]", "slot/1": "[41]"}


def test_a_table_of_another_policy_is_taken_over() -> None:
    """Its leader epochs go on; what is minted is greater than every epoch of ours."""
    slots = tuple(Slot(slot_id, "a", ("b",), Epoch(2 + slot_id)) for slot_id in range(4))
    table = sofa_table(slots, {}, Epoch(7))
    assert table.epoch == 7
    assert [slot.leader_epoch for slot in table.slots.values()] == [2, 3, 4, 5]
    assert sofa_table(EMPTY, {}, Epoch(7)) == INITIAL_TABLE
    answer = SofaPolicy().plan(request(slots, "bc"))
    assert answer.evidence == "assign: 4 slots get another leader, 4 replicas are new, epochs 8 to 12"
    assert {slot.leader_epoch for slot in answer.slots} == {8}


def test_balancing_waits_for_reports_and_then_goes_on() -> None:
    """The answer says which of both it is, so that nobody asks in vain."""
    first = request(names="a", replicas=1)
    slots, memory = with_answer(first, SofaPolicy().plan(first))
    second = replace(request(slots, "ab", replicas=1, memory=memory), epoch=Epoch(9))
    waiting = SofaPolicy().plan(second)
    assert (waiting.slots, waiting.evidence, waiting.waits) == ((), "none: not every slot is in sync", True)
    said = tuple(SlotStatus(slot_id, 8, True, ReplicaStatus.HEALTHY, 0) for slot_id in range(4))
    reported = replace(second, reports={"a": SlotReport(said, Epoch(8), 1, 0)})
    moving = SofaPolicy().plan(reported)
    assert [slot.leader for slot in moving.slots] == ["b"]
    assert moving.evidence == "balance: 1 slots get another leader, 1 replicas are new, epochs 6 to 6"


def test_a_lower_number_of_replicas_is_refused_as_there() -> None:
    """Every tick fails: the table stays, and the answer says why."""
    first = request(replicas=3)
    slots, memory = with_answer(first, SofaPolicy().plan(first))
    answer, refusal = ask(SofaPolicy(), request(slots, memory=memory))
    assert answer == SlotAnswer(())
    assert refusal is not None
    assert "has more than 1 followers" in refusal


def test_a_new_process_keeps_its_place_only_where_nothing_may_change() -> None:
    """Elsewhere it begins anew, as one that went and came."""
    first = request(names="ab")
    slots, memory = with_answer(first, SofaPolicy().plan(first))
    renewed = replace(request(slots, "ab", memory=memory), renewed=frozenset("a"))
    protected = replace(renewed, policy=replace(renewed.policy, slot_policy_options={"protected_nodes": "1"}))
    assert with_answer(renewed, SofaPolicy().plan(renewed))[0] != slots
    assert all("a" not in slot.replicas for slot in with_answer(renewed, SofaPolicy().plan(renewed))[0])
    answer = SofaPolicy().plan(protected)
    assert answer.evidence == "protect: nothing changes with 1 nodes, protected are 1"
    assert with_answer(protected, answer)[0] == slots


def test_a_refresh_deals_the_slots_out_in_turn() -> None:
    """Slot leaders by slot, followers beginning with the last node; every slot gets a leader epoch."""
    answer = SofaPolicy().plan(request(refresh=True))
    assert [(slot.leader, slot.followers) for slot in answer.slots] == [
        ("a", ("c",)),
        ("b", ("a",)),
        ("c", ("b",)),
        ("a", ("c",)),
    ]
    assert answer.evidence == "refresh: 4 slots get another leader, 8 replicas are new, epochs 1 to 5"


@pytest.mark.parametrize(("names", "replicas"), [("", 1), ("a", 2), ("abcd", 3)])
def test_a_refresh_that_gives_no_valid_table_is_refused(names: str, replicas: int) -> None:
    """SOFARegistry publishes it, and then every tick fails."""
    answer, refusal = ask(SofaPolicy(), request(names=names, replicas=replicas, refresh=True))
    assert answer == SlotAnswer(())
    assert refusal


def test_a_note_saves_questions_and_decides_nothing() -> None:
    """A state that is left as it is, whatever nodes report, is asked about once; without the note nothing changes."""
    fleet = SofaFleet()
    fleet.join("a")
    fleet.join("b")
    fleet.run(12_000)
    world = fleet.world
    asked: list[SlotRequest] = []

    class Counting(SofaPolicy):
        def plan(self, request: SlotRequest) -> SlotAnswer:
            asked.append(request)
            return super().plan(request)

    policies = {**BUILT_IN_POLICIES, "sofa": Counting()}
    noted = world.observations
    assert noted.policy_asked is not None
    assert noted.policy_asked.seq == world.state.seq
    assert decide(world.state, noted, policies).sealed is None
    assert not asked
    without = replace(noted, policy_asked=None)
    result = decide(world.state, without, policies)
    assert len(asked) == 1
    assert (result.sealed, result.observations.policy_asked) == (None, noted.policy_asked)


def test_the_dead_may_stay_and_gain_nothing() -> None:
    """A lonely node's dead follower stays published, as in SOFARegistry; nobody is given a slot after his death."""
    fleet = SofaFleet()
    fleet.join("a")
    fleet.run(1_000)
    gone = "b"
    fleet.join(gone, fetch_ms=60_000)
    fleet.run(3_000)
    fleet.kill(gone)
    (fenced,) = fleet.run(5_000)
    state = fleet.world.state
    assert not state.membership.nodes[gone].lives
    assert all(slot.followers == (gone,) for slot in state.slots.table)
    assert fenced.causes[-1].kind is CauseKind.SLOTS_ARRANGED
    assert fenced.causes[-1].evidence == "assign: nobody is left who could hold what is missing"
    check(state)
    with pytest.raises(InvariantViolationError, match="which is fenced"):
        check(with_image(state, "cluster", policy=replace(state.cluster.policy, slot_policy="minimal")))
    led_by_dead = tuple(
        replace(slot, leader=gone, followers=(), leader_epoch=state.epoch) for slot in state.slots.table
    )
    never = tuple(replace(slot, followers=()) for slot in state.slots.table)
    forged = fleet.world.decisions[1]
    after = with_table(replace(state, seq=Seq(state.seq + 1)), led_by_dead)
    with pytest.raises(InvariantViolationError, match="which is fenced"):
        check_step(with_table(state, never), forged, after)


def test_a_leader_that_begins_from_a_snapshot_goes_on_alike() -> None:
    """What the next tick has to know is state: it survives a restart, and the ranks go on where they were."""
    fleet = SofaFleet(slot_count=16, replicas=3)
    for name in ("a", "b", "c"):
        fleet.join(name)
    fleet.run(3_000)
    world = fleet.world
    restored = from_canonical(State, json.loads(json.dumps(to_canonical(world.state))))
    assert restored == world.state
    assert restored.slots.memory["table"] == world.state.slots.memory["table"]
    fleet.join("d")
    fleet.run(8_000)
    for decision in world.decisions[restored.seq :]:
        restored = apply_decision(restored, decision)
    assert restored == world.state
    assert len(world.decisions) > 3

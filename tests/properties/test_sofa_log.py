"""A log under the policy ``sofa`` carries no certificate: it is checked by deciding again, and no forgery passes."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings

from controlplane.core.bundles.events import BundlesAssigned, NamespaceCreated
from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.events import Event
from controlplane.core.membership.events import NodeDraining, NodeFenced, NodeOrdered, NodeUndrained
from controlplane.core.slots.events import (
    MemoryEntry,
    PolicyRemembered,
    ReconciliationResumed,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsUnpinned,
)
from tests.helpers.histories import History, operations, play
from tests.helpers.logs import complaints_of, resealed
from tests.helpers.sofa_fleet import SofaFleet
from tests.helpers.world import World


def _played() -> list[Decision]:
    fleet = SofaFleet(slot_count=16)
    fleet.join("n1")
    fleet.run(1_000)
    for name in ("n2", "n3"):
        fleet.join(name)
    fleet.run(15_000)
    fleet.kill("n2")
    fleet.run(8_000)
    return list(fleet.world.decisions)


PLAYED = _played()
DEATH = next(
    index for index, decision in enumerate(PLAYED) if any(isinstance(event, NodeFenced) for event in decision.events)
)
BALANCE = next(index for index, decision in enumerate(PLAYED) if decision.causes[-1].evidence.startswith("balance: "))


def with_events(index: int, change: Callable[[Event], Event | None]) -> list[Decision]:
    """The log with the events of one decision changed or left out."""
    events = tuple(new for event in PLAYED[index].events if (new := change(event)) is not None)
    return [*PLAYED[:index], replace(PLAYED[index], events=events), *PLAYED[index + 1 :]]


def with_evidence(index: int, evidence: str | None) -> list[Decision]:
    """The log with another word of what the arranger did in one decision."""
    causes = tuple(cause for cause in PLAYED[index].causes if cause.kind is not CauseKind.SLOTS_ARRANGED)
    if evidence is not None:
        causes = (*causes, Cause(CauseKind.SLOTS_ARRANGED, "sofa", evidence))
    return [*PLAYED[:index], replace(PLAYED[index], causes=causes), *PLAYED[index + 1 :]]


def without_slots(event: Event) -> Event | None:
    """Nothing where slots are assigned."""
    return None if isinstance(event, SlotsAssigned) else event


def another_leader(event: Event) -> Event:
    """The first slot goes to another node."""
    if not isinstance(event, SlotsAssigned):
        return event
    slot = event.slots[0]
    leader = next(name for name in ("n1", "n3") if name != slot.leader)
    followers = tuple(str(slot.leader) if name == leader else name for name in slot.followers)
    return SlotsAssigned((replace(slot, leader=leader, followers=followers), *event.slots[1:]))


def another_rank(event: Event) -> Event:
    """One leader epoch that was minted is remembered as a greater one."""
    if not isinstance(event, PolicyRemembered):
        return event
    first = next(index for index, entry in enumerate(event.entries) if entry.value and entry.name != "table")
    entries = list(event.entries)
    entries[first] = MemoryEntry(entries[first].name, "[9999]")
    return PolicyRemembered(tuple(entries))


FORGED: dict[str, tuple[list[Decision], str]] = {
    "a death without consequences": (with_events(DEATH, without_slots), "gives another table"),
    "a death without a cause": (
        with_evidence(DEATH, None),
        "NodeFenced without a cause that says what the arranger did",
    ),
    "moves without a cause": (with_evidence(BALANCE, None), "it has no cause"),
    "another action": (
        with_evidence(DEATH, "none: not every slot is in sync"),
        "was 'none', by table and nodes",
    ),
    "an action that there is not": (with_evidence(DEATH, "refused: somebody said so"), "has to be 'assign'"),
    "a refresh that nobody asked for": (with_evidence(DEATH, "refresh: 1 slots"), "tick was 'refresh'"),
    "another slot leader": (with_events(DEATH, another_leader), "gives another table"),
    "another move": (with_events(BALANCE, another_leader), "gives another table"),
    "another rank": (with_events(DEATH, another_rank), "gives another table"),
}


def test_a_log_of_joins_moves_and_a_death_is_accepted() -> None:
    """Nothing in it needs a certificate."""
    assert complaints_of(PLAYED) == []


@pytest.mark.parametrize("case", FORGED)
def test_what_the_arranger_would_not_have_done_is_found(case: str) -> None:
    """Also where the digests were made to fit."""
    decisions, expected = FORGED[case]
    complaints = complaints_of(resealed(decisions))
    assert any(expected in complaint for complaint in complaints), complaints


def _operated() -> list[Decision]:
    world = World(ClusterPolicy(slot_count=16, slot_policy="sofa"))
    world.admit("n1", "n2", "n3")
    world.ask("drain_node", node="n3")
    world.ask("undrain_node", node="n3")
    world.ask("set_node", node="n1", weight="2")
    world.ask("pin_slots", slots="3", node="n1")
    world.ask("unpin_slots", slots="3", node="n1")
    world.ask("exclude_slots", slots="3", node="n1")
    world.ask("include_slots", slots="3", node="n1")
    world.ask("change_policy", slot_count="32")
    world.ask("create_namespace", namespace="kv")
    world.ask("pause_reconciliation")
    world.ask("resume_reconciliation")
    world.ask("refresh_table")
    return list(world.decisions)


OPERATED = _operated()


def ignored(index: int) -> list[Decision]:
    """The log up to a decision in which the leader asked the arranger nothing."""
    decision = OPERATED[index]
    causes = tuple(
        cause for cause in decision.causes if cause.kind not in (CauseKind.SLOTS_ARRANGED, CauseKind.PLACEMENT_REFUSED)
    )
    asked = (SlotsAssigned, PolicyRemembered, BundlesAssigned)
    events = tuple(event for event in decision.events if not isinstance(event, asked))
    return [*OPERATED[:index], replace(decision, causes=causes, events=events)]


@pytest.mark.parametrize(
    "kind",
    [
        NodeDraining,
        NodeUndrained,
        NodeOrdered,
        SlotsPinned,
        SlotsUnpinned,
        SlotsExcluded,
        SlotsIncluded,
        PolicyChanged,
        NamespaceCreated,
        ReconciliationResumed,
    ],
)
def test_order_that_the_leader_ignored_is_found(kind: type[Event]) -> None:
    """Whatever an operator orders, the leader gives the arranger its tick in the same decision."""
    index = next(
        index for index, decision in enumerate(OPERATED) if any(isinstance(event, kind) for event in decision.events)
    )
    complaints = complaints_of(resealed(ignored(index)))
    assert any(f"{kind.__name__} without a cause that says what the arranger did" in each for each in complaints), (
        complaints
    )


def test_refresh_that_the_leader_ignored_is_found() -> None:
    """It has no event of its own: the cause says that an operator asked for it."""
    complaints = complaints_of(resealed(ignored(len(OPERATED) - 1)))
    assert any("a refresh without a cause that says what the arranger did" in each for each in complaints), complaints


@given(operations)
@settings(max_examples=40)
def test_every_log_of_an_operated_cluster_is_accepted(history: History) -> None:
    """Joins, deaths, drains, pauses, refreshes, splits: a leader that runs the policy is never complained of."""
    world = play(history, World(ClusterPolicy(slot_count=8, slot_policy="sofa")))
    assert complaints_of(world.decisions) == []


def test_memory_ends_where_another_policy_ruled_within_one_decision() -> None:
    """Several changes of the policy can be taken up together, and what was remembered before the first is gone."""
    world = World(ClusterPolicy(slot_count=16, slot_policy="sofa"))
    world.admit("n1", "n2", "n3")
    world.leave("n3")
    world.run(1_000, ("n1", "n2", "n3"))
    assert world.state.slots.memory
    world.intent("away", "change_policy", slot_policy="minimal", tolerance_percent="5")
    world.intent("back", "change_policy", slot_policy="sofa")
    world.tick()
    decision = world.decide()
    assert decision is not None
    changes = [event.policy.slot_policy for event in decision.events if isinstance(event, PolicyChanged)]
    assert changes == ["minimal", "sofa"]
    assert complaints_of(world.decisions) == []

"""The check of a log from outside, where operators had their say: each rule, broken once, is named."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from controlplane.core.cluster.events import FormerSilenceLimitEnded, PolicyChanged
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction, ZoneRule
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.membership.events import NodeDraining, NodeFenced, NodeOrdered, NodeUndrained
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.slots.events import (
    ReconciliationPaused,
    ReconciliationResumed,
    SlotsAssigned,
    SlotsExcluded,
    SlotsPinned,
    SlotsSplit,
)
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from tests.helpers.logs import complaints_of, resealed
from tests.helpers.world import World


def _operated() -> list[Decision]:
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1", "n2", "n3", "n4")
    world.ask("drain_node", node="n1")
    world.ask("undrain_node", node="n1")
    world.ask("set_node", node="n1", weight="2")
    world.ask("pin_slots", slots="3", node="n1")
    world.ask("unpin_slots", slots="3", node="n1")
    world.ask("exclude_node", node="n2")
    world.ask("include_node", node="n2")
    world.ask("change_policy", slot_count="32")
    world.ask("change_policy", silence_limit_ms="2000")
    world.ask("pause_reconciliation")
    world.run(4_500, ("n1", "n2", "n3"))
    world.ask("resume_reconciliation")
    world.ask("refresh_table")
    return list(world.decisions)


OPERATED = _operated()


def where(kind: type[Event]) -> int:
    """The first decision with an event of this kind."""
    return next(
        index for index, decision in enumerate(OPERATED) if any(isinstance(event, kind) for event in decision.events)
    )


SPLIT, PAUSED, DEATH = where(SlotsSplit), where(ReconciliationPaused), where(NodeFenced)


def changed(index: int, change: Callable[[Event], Event | None], **fields: object) -> list[Decision]:
    """The log with the events of one decision changed, those for which nothing is given left out; and other fields."""
    events = tuple(after for event in OPERATED[index].events if (after := change(event)) is not None)
    decision = replace(OPERATED[index], events=events, **fields)  # type: ignore[arg-type]  # cases name fields
    return [*OPERATED[:index], decision, *OPERATED[index + 1 :]]


def added(index: int, event: Event) -> list[Decision]:
    """The log with one more event at the begin of a decision."""
    decision = OPERATED[index]
    return [*OPERATED[:index], replace(decision, events=(event, *decision.events)), *OPERATED[index + 1 :]]


def with_slots(kind: type[SlotsAssigned | SlotsSplit], change: Callable[[Slot], Slot]) -> Callable[[Event], Event]:
    """The first row of such an event changed."""

    def change_event(event: Event) -> Event:
        if isinstance(event, SlotsAssigned | SlotsSplit) and isinstance(event, kind):
            return type(event)((change(event.slots[0]), *event.slots[1:]))
        return event

    return change_event


def without(kind: type[Event]) -> Callable[[Event], Event | None]:
    """Such events left out."""
    return lambda event: None if isinstance(event, kind) else event


def instead(kind: type[Event], other: Event) -> Callable[[Event], Event]:
    """Another event instead of such ones."""
    return lambda event: other if isinstance(event, kind) else event


def policy(**fields: object) -> Callable[[Event], Event]:
    """Another policy, and no silence limit that goes on to fence."""

    def change(event: Event) -> Event:
        if isinstance(event, PolicyChanged):
            return PolicyChanged(replace(event.policy, **fields), None)  # type: ignore[arg-type]  # cases name fields
        return event

    return change


SHORTENED = next(
    index
    for index, decision in enumerate(OPERATED)
    if any(isinstance(event, PolicyChanged) and event.former_silence_limit for event in decision.events)
)
FORGED: dict[str, tuple[list[Decision], str]] = {
    "a drain without consequences": (
        changed(where(NodeDraining), without(SlotsAssigned), certificate=None),
        "NodeDraining without a certificate",
    ),
    "a drain taken back without a plan": (
        changed(where(NodeUndrained), without(SlotsAssigned), certificate=None),
        "NodeUndrained without a certificate",
    ),
    "a node kept that wanted to go": (
        changed(
            where(NodeDraining),
            lambda event: replace(event, leaving=True) if isinstance(event, NodeDraining) else event,
        ),
        "node 'n1' asked to leave and is undrained",
    ),
    "a weight that the plan does not know": (
        changed(where(NodeOrdered), instead(NodeOrdered, NodeOrdered("n1", StandingOrder(weight=9)))),
        "the shares of replicas are not fair",
    ),
    "an exclusion that the plan does not know": (
        changed(where(NodeOrdered), instead(NodeOrdered, NodeOrdered("n1", StandingOrder(excluded=True)))),
        "its node shares do not name the nodes",
    ),
    "a pin without a plan": (
        changed(where(SlotsPinned), without(SlotsAssigned), certificate=None),
        "SlotsPinned without a certificate",
    ),
    "more pins than replicas": (
        changed(
            where(SlotsPinned),
            instead(SlotsPinned, SlotsPinned(tuple(Pin(3, name) for name in ("n1", "n2", "n3")))),
        ),
        "slot 3 cannot have 3 pins: replica_count is 2",
    ),
    "a pin of what is excluded": (
        added(where(SlotsPinned), SlotsExcluded((Exclusion(3, "n1"),))),
        "slot 3 cannot be pinned to 'n1' and excluded from it at once",
    ),
    "another hash function": (
        changed(where(PolicyChanged), policy(hash_function=HashFunction.MD5)),
        "the hash function changes to md5",
    ),
    "a silence limit that falls at once": (
        changed(SHORTENED, policy()),
        "the silence limit falls below 2500 ms at once",
    ),
    "a part with another leader": (
        changed(SPLIT, with_slots(SlotsSplit, lambda slot: replace(slot, leader="n9"))),
        "slot 16 is no part of slot 0",
    ),
    "a part that lost a replica": (
        changed(SPLIT, with_slots(SlotsSplit, lambda slot: replace(slot, followers=()))),
        "slot 16 is no part of slot 0",
    ),
    "a part of an older epoch": (
        changed(SPLIT, with_slots(SlotsSplit, lambda slot: replace(slot, leader_epoch=Epoch(1)))),
        "slot 16 is no part of slot 0",
    ),
    "a split without its policy": (changed(SPLIT, without(PolicyChanged)), "32 slots, the policy says 16"),
    "a policy without its split": (
        changed(SPLIT, lambda event: None if isinstance(event, SlotsSplit | SlotsAssigned) else event)[: SPLIT + 1],
        "16 slots, the policy says 32",
    ),
    "a move during a pause": (
        changed(DEATH, with_slots(SlotsAssigned, lambda slot: replace(slot, followers=("n1", "n2", "n3")[:2]))),
        "while reconciliation is paused",
    ),
    "a survivor dropped during a pause": (
        changed(DEATH, with_slots(SlotsAssigned, lambda slot: replace(slot, leader=None, followers=()))),
        "while reconciliation is paused: held by []",
    ),
    "a heir under the old epoch": (
        changed(
            DEATH,
            lambda event: (
                SlotsAssigned(tuple(replace(slot, leader_epoch=Epoch(1)) for slot in event.slots))
                if isinstance(event, SlotsAssigned)
                else event
            ),
        ),
        "leader epoch",
    ),
    "the dead left in place during a pause": (
        changed(DEATH, without(SlotsAssigned)),
        "while reconciliation is paused: held by",
    ),
    "a plan during a pause": (
        changed(PAUSED, lambda event: event, certificate=OPERATED[SPLIT].certificate),
        "nothing is planned",
    ),
    "a pause that ends without a plan": (
        changed(where(ReconciliationResumed), without(SlotsAssigned), certificate=None),
        "ReconciliationResumed without a certificate",
    ),
    "a former limit ended that was not shortened": (
        added(1, FormerSilenceLimitEnded(2_500)),
        "a former silence limit is ended, but none was shortened",
    ),
    "a refresh that keeps its epoch": (
        [*OPERATED[:-1], replace(OPERATED[-1], epoch=Epoch(OPERATED[-1].epoch - 1))],
        "by the rows that it changes it has to be",
    ),
}


def test_operated_log_is_accepted() -> None:
    """Every operation as the leader writes it."""
    assert complaints_of(OPERATED) == []


@pytest.mark.parametrize("case", FORGED)
def test_forged_log_is_found(case: str) -> None:
    """Also with digests that fit."""
    decisions, expected = FORGED[case]
    complaints = complaints_of(resealed(decisions))
    assert any(expected in complaint for complaint in complaints), complaints


def test_split_whose_parts_wait_for_their_new_leaders_is_accepted() -> None:
    """A part that the plan gives to another leader, not at once, begins with the decision's epoch all the same."""
    world = World(ClusterPolicy(slot_count=16, replica_count=1, cool_down_ms=60_000))
    world.admit("n1", "n2", "n3")
    world.intent("split", "change_policy", slot_count="32")
    world.intent("weigh", "set_node", node="n1", weight="9")
    world.tick()
    world.decide()
    planned = world.state.slots.planned
    assert any(
        planned[slot.slot_id].leader != slot.leader for slot in world.state.slots.table[16:] if slot.slot_id in planned
    )
    assert complaints_of(world.decisions) == []


def _crowded() -> World:
    """Slot 0 is pinned to three nodes, of which two, once in zones of their own, come back in the zone of the third."""
    rule = ClusterPolicy(slot_count=16, replica_count=3, join_linger_ms=0, zone_rule=ZoneRule.HARD, replicas_per_zone=1)
    world = World(rule)
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "c")):
        world.join(name, zone=zone)
        world.heartbeat(name)
    world.run(100)
    for name in ("n1", "n2", "n3"):
        world.ask("pin_slots", slots="0", node=name)
    for name in ("n2", "n3"):
        world.join(name, incarnation=2, zone="a")
        world.heartbeat(name, incarnation=2)
    world.run(100)
    return world


def test_contradiction_that_only_shrinks_is_accepted() -> None:
    """One pin fewer is told in another sentence, and another order in the same decision makes somebody look."""
    world = _crowded()
    world.intent("fewer", "unpin_slots", slots="0", node="n3")
    world.intent("other", "exclude_slots", slots="5", node="n1")
    world.run(100)
    assert {world.answers()[name].outcome.value for name in ("fewer", "other")} == {"done"}
    assert complaints_of(world.decisions) == []


def test_contradiction_that_grows_is_refused_and_found() -> None:
    """It was there before, but not so great."""
    world = _crowded()
    world.ask("unpin_slots", slots="0", node="n3")
    assert world.ask("change_policy", replica_count="1").outcome.value == "refused"
    again = world.ask("pin_slots", slots="0", node="n3")
    assert (again.outcome.value, again.detail) == (
        "refused",
        "slot 0 cannot have 3 pins in zone 'a', which may hold 1",
    )
    last = world.decisions[-1]
    forged = replace(last, events=(SlotsPinned((Pin(0, "n3"),)), *last.events))
    complaints = complaints_of(resealed([*world.decisions[:-1], forged]))
    assert any("slot 0 cannot have 3 pins in zone 'a'" in complaint for complaint in complaints), complaints

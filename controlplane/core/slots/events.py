"""Events of slots: pins and exclusions, pauses, plans, new rows, and the memory of a slot policy."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.slots.handoffs import SlotHandoff
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure
from controlplane.core.slots.table import Slot
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import NodeId, Seq, SlotId


def _holders(replicas: Iterable[Pin | Exclusion | Departure]) -> Iterator[NodeId]:
    return (replica.node_id for replica in replicas)


def _replicas(rows: Iterable[Slot]) -> Iterator[NodeId]:
    return (node_id for row in rows for node_id in row.replicas)


@event(calls_for=CallsFor.PLAN, nodes=lambda each: _holders(each.pins))
@dataclass(frozen=True, slots=True)
class SlotsPinned:
    """New pins; an existing pin of the same slot and node is replaced."""

    pins: tuple[Pin, ...]


@event(calls_for=CallsFor.PLAN, nodes=lambda each: _holders(each.pins))
@dataclass(frozen=True, slots=True)
class SlotsUnpinned:
    """Pins that are removed."""

    pins: tuple[Pin, ...]


@event(calls_for=CallsFor.PLAN, nodes=lambda each: _holders(each.exclusions))
@dataclass(frozen=True, slots=True)
class SlotsExcluded:
    """New exclusions."""

    exclusions: tuple[Exclusion, ...]


@event(calls_for=CallsFor.PLAN, nodes=lambda each: _holders(each.exclusions))
@dataclass(frozen=True, slots=True)
class SlotsIncluded:
    """Exclusions that are removed."""

    exclusions: tuple[Exclusion, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class ReconciliationPaused:
    """No slot moves from now on; only dead nodes are taken out of the table. ``reason`` says why."""

    reason: str


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class ReconciliationResumed:
    """Slots are planned again; ``reason`` says why."""

    reason: str


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _replicas(each.slots))
@dataclass(frozen=True, slots=True)
class SlotsSplit:
    """New rows because each slot was split, ascending by slot."""

    slots: tuple[Slot, ...]


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _replicas(each.slots))
@dataclass(frozen=True, slots=True)
class SlotsAssigned:
    """Whole new rows of the slot table, ascending by slot."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A value that a slot policy stores, by name; None removes it."""

    name: str
    value: str | None


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class PolicyRemembered:
    """Changes of what the slot policy stores for its next call, sorted by name."""

    entries: tuple[MemoryEntry, ...]


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _replicas(each.rows))
@dataclass(frozen=True, slots=True)
class PlanMade:
    """A plan of this decision whose ``rows``, ascending by slot, are carried out later.

    A row is done when it is assigned. The decision that assigns it sets its leader epoch.
    """

    plan_id: Seq
    made_at_ms: int
    not_before_ms: int
    rows: tuple[Slot, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class PlanDropped:
    """The remaining rows of a plan are dropped."""

    plan_id: Seq
    reason: str


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: _holders(each.departures))
@dataclass(frozen=True, slots=True)
class ReplicasLeft:
    """Living nodes have given up replicas; departures outside the return window are removed."""

    at_ms: int
    departures: tuple[Departure, ...]


@event(
    calls_for=CallsFor.NOTHING,
    nodes=lambda each: (handoff.next_leader for handoff in each.handoffs),
    since_level=HANDOFFS_FROM_LEVEL,
)
@dataclass(frozen=True, slots=True)
class SlotHandoffsChanged:
    """Handoffs of slots begin, or go on to the release; ``handoffs`` are the whole entries, ascending by slot.

    A handoff ends when its slot is assigned.
    """

    handoffs: tuple[SlotHandoff, ...]


@event(calls_for=CallsFor.NOTHING, since_level=HANDOFFS_FROM_LEVEL)
@dataclass(frozen=True, slots=True)
class SlotHandoffsEnded:
    """Handoffs of slots end, and their leaders serve on, because nothing is planned for the slots any more."""

    slot_ids: tuple[SlotId, ...]


SlotEvent: TypeAlias = (
    SlotsPinned
    | SlotsUnpinned
    | SlotsExcluded
    | SlotsIncluded
    | ReconciliationPaused
    | ReconciliationResumed
    | SlotsSplit
    | SlotsAssigned
    | PolicyRemembered
    | PlanMade
    | PlanDropped
    | ReplicasLeft
    | SlotHandoffsChanged
    | SlotHandoffsEnded
)

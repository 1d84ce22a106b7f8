"""Events on slots: pins and exclusions, pauses, plans, new rows, what a policy remembers."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure
from controlplane.core.slots.table import Slot
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import Seq


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class SlotsPinned:
    """Replicas that have to be there from now on; one of the same slot and node is replaced."""

    pins: tuple[Pin, ...]


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class SlotsUnpinned:
    """Pins that are taken back."""

    pins: tuple[Pin, ...]


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class SlotsExcluded:
    """Replicas that must not be there from now on."""

    exclusions: tuple[Exclusion, ...]


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class SlotsIncluded:
    """Exclusions that are taken back."""

    exclusions: tuple[Exclusion, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class ReconciliationPaused:
    """No slot moves from now on; only the dead are taken out of the table. ``reason`` says why."""

    reason: str


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class ReconciliationResumed:
    """Slots are planned again; ``reason`` says why."""

    reason: str


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class SlotsSplit:
    """The rows that the slot table gains because each slot was split: those of the split slots, ascending by slot."""

    slots: tuple[Slot, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class SlotsAssigned:
    """New rows of the slot table, whole, ascending by slot."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """Something that a slot policy remembers, by name; a value of None forgets it."""

    name: str
    value: str | None


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class PolicyRemembered:
    """What the slot policy has to know again when it is asked next, as far as it changes, sorted by name."""

    entries: tuple[MemoryEntry, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class PlanMade:
    """What of this decision's plan is carried out later: ``rows`` as planned, ascending by slot.

    A row that is assigned is done. Leader epochs are those of the decision that assigns.
    """

    plan_id: Seq
    made_at_ms: int
    not_before_ms: int
    rows: tuple[Slot, ...]


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class PlanDropped:
    """What was left of a plan is not carried out any more."""

    plan_id: Seq
    reason: str


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class ReplicasLeft:
    """Living nodes have given replicas up; older departures that matter no more are forgotten."""

    at_ms: int
    departures: tuple[Departure, ...]


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
)

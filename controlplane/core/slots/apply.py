"""Applies events to the image of the slots."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar, assert_never

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.events import (
    MemoryEntry,
    PlanDropped,
    PlanMade,
    PolicyRemembered,
    ReconciliationPaused,
    ReconciliationResumed,
    ReplicasLeft,
    SlotEvent,
    SlotHandoffsChanged,
    SlotHandoffsEnded,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.slots.image import SlotAndNode, SlotsImage
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import PlanInFlight
from controlplane.core.slots.table import Slot
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import SlotId
from controlplane.errors import InvariantViolationError

_Pair = TypeVar("_Pair", Pin, Exclusion)


def apply_slot_event(  # noqa: C901, PLR0911, PLR0912 - one line for each kind of event
    slots: SlotsImage, event: SlotEvent, policy: ClusterPolicy
) -> SlotsImage:
    """The image after one event.

    Args:
        slots: the image before it.
        event: the event.
        policy: the cluster's policy.

    Raises:
        InvariantViolationError: the event cannot happen in this image: it names an unknown slot, removes a pin or
            exclusion that does not exist, or makes a second plan.
    """
    match event:
        case SlotsAssigned(slots=rows):
            return _assign(slots, rows)
        case SlotsSplit(slots=parts):
            return _split(slots, parts)
        case SlotsPinned(pins=pins):
            return replace(slots, pinned=_put(slots, "pin", slots.pinned, pins))
        case SlotsUnpinned(pins=pins):
            return replace(slots, pinned=_take("pin", slots.pinned, pins))
        case SlotsExcluded(exclusions=exclusions):
            return replace(slots, excluded=_put(slots, "exclusion", slots.excluded, exclusions))
        case SlotsIncluded(exclusions=exclusions):
            return replace(slots, excluded=_take("exclusion", slots.excluded, exclusions))
        case ReconciliationPaused():
            return replace(slots, paused=True)
        case ReconciliationResumed():
            return replace(slots, paused=False)
        case PlanMade():
            return _make_plan(slots, event)
        case PlanDropped():
            if slots.plan is None or slots.plan.plan_id != event.plan_id:
                raise InvariantViolationError(f"plan {event.plan_id} is dropped, in flight is {slots.plan}")
            return _without_planned(slots, slots.planned.keys())
        case ReplicasLeft():
            return _note_departures(slots, event, policy.return_window_ms)
        case SlotHandoffsChanged(handoffs=handoffs):
            return replace(slots, handoffs=slots.handoffs.put((each.slot_id, each) for each in handoffs))
        case SlotHandoffsEnded(slot_ids=slot_ids):
            return _without_handoffs(slots, slot_ids)
        case PolicyRemembered(entries=entries):
            return remember(slots, entries)
        case _:
            assert_never(event)


def remember(slots: SlotsImage, entries: Iterable[MemoryEntry]) -> SlotsImage:
    """The image after changes to the slot policy's memory."""
    entries = tuple(entries)
    kept = [(entry.name, entry.value) for entry in entries if entry.value is not None]
    forgotten = [entry.name for entry in entries if entry.value is None and entry.name in slots.memory]
    return replace(slots, memory=slots.memory.put(kept).drop(forgotten))


def _assign(slots: SlotsImage, rows: tuple[Slot, ...]) -> SlotsImage:
    for slot in rows:
        if slot.slot_id not in slots.rows:
            message = f"slot {slot.slot_id} is not between 0 and {len(slots.rows) - 1}"
            raise InvariantViolationError(message)
    assigned = slots.with_rows(rows)
    if slots.handoffs:
        handed_off = [slot.slot_id for slot in rows if slot.slot_id in slots.handoffs]
        assigned = replace(assigned, handoffs=slots.handoffs.drop(handed_off))
    return _without_planned(assigned, {slot.slot_id for slot in rows}) if slots.planned else assigned


def _split(slots: SlotsImage, parts: tuple[Slot, ...]) -> SlotsImage:
    first = len(slots.rows)
    if [slot.slot_id for slot in parts] != list(range(first, first + len(parts))):
        message = f"the parts of split slots do not have the next slot ids, from {first} on"
        raise InvariantViolationError(message)
    return slots.with_rows(parts)


def _without_handoffs(slots: SlotsImage, slot_ids: Iterable[SlotId]) -> SlotsImage:
    for slot_id in slot_ids:
        if slot_id not in slots.handoffs:
            raise InvariantViolationError(f"slot {slot_id} is not being handed off")
    return replace(slots, handoffs=slots.handoffs.drop(slot_ids))


def _without_planned(slots: SlotsImage, done: AbstractSet[SlotId]) -> SlotsImage:
    """The image without these rows of the plan in flight, carried out or dropped. The last row ends the plan."""
    planned = slots.planned.drop(done & slots.planned.keys())
    return replace(slots, plan=slots.plan if planned else None, planned=planned)


def _make_plan(slots: SlotsImage, event: PlanMade) -> SlotsImage:
    if slots.plan is not None or not event.rows:
        raise InvariantViolationError(f"plan {event.plan_id} is made while {slots.plan} is there, or is empty")
    plan = PlanInFlight(event.plan_id, event.made_at_ms, event.not_before_ms)
    return replace(slots, plan=plan, planned=Entries((slot.slot_id, slot) for slot in event.rows))


def _note_departures(slots: SlotsImage, event: ReplicasLeft, return_window_ms: int) -> SlotsImage:
    since_ms = event.at_ms - return_window_ms
    forgotten = [key for key, departure in slots.departed.items() if departure.left_at_ms <= since_ms]
    new = (((each.slot_id, each.node_id), each) for each in event.departures)
    return replace(slots, departed=slots.departed.drop(forgotten).put(new))


def _put(
    slots: SlotsImage, kind: str, known: Entries[SlotAndNode, _Pair], added: Iterable[_Pair]
) -> Entries[SlotAndNode, _Pair]:
    added = tuple(added)
    for each in added:
        if each.slot_id not in slots.rows:
            message = f"{kind} of slot {each.slot_id}, which is not between 0 and {len(slots.rows) - 1}"
            raise InvariantViolationError(message)
    return known.put(((each.slot_id, each.node_id), each) for each in added)


def _take(kind: str, known: Entries[SlotAndNode, _Pair], taken: Iterable[_Pair]) -> Entries[SlotAndNode, _Pair]:
    for each in taken:
        if known.get((each.slot_id, each.node_id)) != each:
            message = f"{kind} of slot {each.slot_id} and node {each.node_id!r} is to be removed, but does not exist"
            raise InvariantViolationError(message)
        known = known.drop([(each.slot_id, each.node_id)])
    return known

"""The rows of the slots in the routing table: those of the slot table."""

from collections.abc import Iterable
from typing import assert_never

from controlplane.core.slots.events import (
    PlanDropped,
    PlanMade,
    PolicyRemembered,
    ReconciliationPaused,
    ReconciliationResumed,
    ReplicasLeft,
    SlotEvent,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.values.identifiers import SlotId


def touched_slots(event: SlotEvent) -> Iterable[SlotId]:
    """The slots whose rows an event may change."""
    match event:
        case SlotsAssigned(slots=slots) | SlotsSplit(slots=slots):
            return [slot.slot_id for slot in slots]
        case SlotsPinned() | SlotsUnpinned() | SlotsExcluded() | SlotsIncluded():
            return []
        case ReconciliationPaused() | ReconciliationResumed() | PlanMade() | PlanDropped() | ReplicasLeft():
            return []
        case PolicyRemembered():
            return []
        case _:
            assert_never(event)

"""The rows of slots in the routing table."""

from collections.abc import Iterable
from typing import Final, assert_never, get_args

from controlplane.core.cluster.events import ClusterCreated
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.slots.events import (
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
from controlplane.core.slots.image import SlotsImage
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import SlotId
from controlplane.core.values.row_kind import RowKind

_MOST_DIGITS: Final = 10
"""Greatest number of digits of a slot id in a key. Python refuses to parse thousands of digits."""


def touched_slots(event: SlotEvent | ClusterCreated) -> Iterable[SlotId]:
    """The slots whose rows an event may change."""
    match event:
        case ClusterCreated(policy=policy):
            return range(policy.slot_count)
        case SlotsAssigned(slots=slots) | SlotsSplit(slots=slots):
            return [slot.slot_id for slot in slots]
        case SlotHandoffsChanged(handoffs=handoffs):
            return [handoff.slot_id for handoff in handoffs]
        case SlotHandoffsEnded(slot_ids=slot_ids):
            return slot_ids
        case SlotsPinned() | SlotsUnpinned() | SlotsExcluded() | SlotsIncluded():
            return []
        case ReconciliationPaused() | ReconciliationResumed() | PlanMade() | PlanDropped() | ReplicasLeft():
            return []
        case PolicyRemembered():
            return []
        case _:
            assert_never(event)


def slot_number(text: str) -> SlotId | None:
    """The slot id of a key; None if the text is not in canonical form, such as "05", which int() accepts."""
    if len(text) > _MOST_DIGITS or not text.isdecimal():
        return None
    number = SlotId(int(text))
    return number if str(number) == text else None


SLOT_ROWS: Final = RowKind(
    name="slot",
    record=Slot,
    levels=(1, HANDOFFS_FROM_LEVEL),
    image=SlotsImage,
    ids=lambda image: image.rows,
    row=lambda image, slot_id: image.shown_row(slot_id),
    events=(*get_args(SlotEvent), ClusterCreated),
    touched=touched_slots,
    id_of=lambda slot: slot.slot_id,
    id_in_key=slot_number,
)
"""The kind of a slot's row, for example ``main/slot/17``."""

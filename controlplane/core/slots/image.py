"""The image of the slots: the table, pins and exclusions, the plan in flight, and the memory of the slot policy."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.slots.handoffs import SlotHandoff, shown
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure, PlanInFlight
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import later
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.core.values.image import Image

SlotAndNode: TypeAlias = tuple[SlotId, NodeId]


@dataclass(frozen=True)
class SlotsImage(Image):
    """The part of the state that belongs to slots.

    Attributes:
        rows: the slot table, by slot id: 0 to the slot count less 1.
        pinned: pins, by slot and node.
        excluded: exclusions of slots, by slot and node.
        planned: the remaining rows of the plan in flight, by slot id.
        departed: recent departures, by slot and node.
        memory: what the slot policy remembers, by name. Another slot policy starts without it.
        handoffs: the handoffs of leaderships that planned rows wait for, by slot.
        plan: the plan in flight; None if no rows are left.
        paused: whether reconciliation is paused, so that no slot is planned.
    """

    rows: Entries[SlotId, Slot] = field(default_factory=Entries)
    pinned: Entries[SlotAndNode, Pin] = field(default_factory=Entries)
    excluded: Entries[SlotAndNode, Exclusion] = field(default_factory=Entries)
    planned: Entries[SlotId, Slot] = field(default_factory=Entries)
    departed: Entries[SlotAndNode, Departure] = field(default_factory=Entries)
    memory: Entries[str, str] = field(default_factory=Entries)
    handoffs: Entries[SlotId, SlotHandoff] = field(
        default_factory=Entries, metadata=later(since_level=HANDOFFS_FROM_LEVEL)
    )
    plan: PlanInFlight | None = None
    paused: bool = False

    @cached_property
    def table(self) -> tuple[Slot, ...]:
        """The slot table, index = slot id."""
        return tuple(self.rows.values())

    def shown_row(self, slot_id: SlotId) -> Slot | None:
        """The row of a slot that nodes and clients read; None if there is no such slot."""
        slot = self.rows.get(slot_id)
        return None if slot is None else shown(slot, self.handoffs.get(slot_id))

    @cached_property
    def pins(self) -> tuple[Pin, ...]:
        """The pins, ascending by slot and node."""
        return tuple(self.pinned.values())

    @cached_property
    def exclusions(self) -> tuple[Exclusion, ...]:
        """The exclusions, ascending by slot and node."""
        return tuple(self.excluded.values())

    @cached_property
    def planned_rows(self) -> tuple[Slot, ...]:
        """The remaining rows of the plan in flight, ascending by slot."""
        return tuple(self.planned.values())

    @cached_property
    def departures(self) -> tuple[Departure, ...]:
        """The recent departures, ascending by slot and node."""
        return tuple(self.departed.values())

    def with_rows(self, rows: Iterable[Slot]) -> "SlotsImage":
        """The image with these rows of the table added or replaced."""
        rows = tuple(rows)
        changed = replace(self, rows=self.rows.put((slot.slot_id, slot) for slot in rows))
        known = self.__dict__.get("table")
        if known is not None:
            # Copying pointers is much faster than looking up and sorting rows, and most plans read the whole table.
            table = list(known)
            for slot in rows:
                table[slot.slot_id : slot.slot_id + 1] = [slot]
            changed.__dict__["table"] = tuple(table)
        return changed

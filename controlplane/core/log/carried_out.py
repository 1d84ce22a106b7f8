"""What a decision carries out itself, of its own plan or of an earlier one, counted from the rows before and after."""

from collections.abc import Collection
from typing import NamedTuple

from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.table import without_nodes


class CarriedOut(NamedTuple):
    """How far a decision gets with the slot table.

    Attributes:
        moves: replicas that it places on nodes that did not hold them.
        leader_changes: slots that have another leader after it, also to or from none.
        moves_left: replicas that the plan in flight has still to place after it.
    """

    moves: int
    leader_changes: int
    moves_left: int


def carried_out(before: State, after: State, events: Collection[Event]) -> CarriedOut:
    """Count what ``events`` did to the slot table between two states.

    A process that is admitted holds nothing of what a former one of its name held, so what it keeps is placed anew. A
    part of a split slot begins with the holders of the slot that it was part of.
    """
    renewed = renewed_by(events)
    touched = {slot.slot_id for event in events if isinstance(event, SlotsAssigned) for slot in event.slots}
    if renewed:
        touched.update(slot.slot_id for slot in after.slots.table if not renewed.isdisjoint(slot.replicas))
    held = without_nodes(before.slots.table, renewed)
    moves = leader_changes = 0
    for slot_id in touched:
        new = after.slots.table[slot_id]
        old = held[slot_id % len(held)] if held else None
        moves += len(set(new.replicas).difference(old.replicas if old else ()))
        leader_changes += new.leader != (old.leader if old else None)
    left = sum(
        len(set(row.replicas) - set(after.slots.table[row.slot_id].replicas)) for row in after.slots.planned_rows
    )
    return CarriedOut(moves, leader_changes, left)

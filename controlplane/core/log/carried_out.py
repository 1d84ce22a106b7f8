"""Counts what a decision carries out of its own plan or of an earlier one, from the rows before and after it."""

from collections.abc import Collection
from typing import NamedTuple

from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.table import without_nodes


class CarriedOut(NamedTuple):
    """What one decision carries out in the slot table.

    Attributes:
        moves: replicas placed on nodes that did not hold them.
        leader_changes: slots whose leader changes, including from or to none.
        moves_left: replicas that the plan in flight has not placed yet after the decision.
    """

    moves: int
    leader_changes: int
    moves_left: int


def carried_out(before: State, after: State, events: Collection[Event]) -> CarriedOut:
    """Count what ``events`` did to the slot table between two states.

    A new process of a node holds nothing that an earlier process held, so the replicas that it keeps count as moves. A
    part of a split slot is compared with the slot that was split.
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

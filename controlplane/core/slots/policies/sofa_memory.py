"""Converts our rows and the memory of the policy ``sofa`` into SOFARegistry's table, and back.

Our rows contain the leader and the followers of each slot. SOFARegistry's table also has an epoch of its own, leader
epochs of which one tick mints several, and followers in the order in which Java iterates them. The memory holds what
our rows do not contain:

==============  ========================================================================================
``table``       ``[57,12]``: the table's epoch, and the epoch of ours that published it
``slot/17``     ``[41]`` or ``[41,"n3","n1"]``: the slot's leader epoch, and its followers in Java's order
                if that differs from the order of their names; missing if our row contains the same
==============  ========================================================================================

A table of another policy is taken over with its rows' leader epochs, and with our epoch as the table's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaSlot, SofaTable
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, SlotId

Memory: TypeAlias = Mapping[str, str]

TABLE_ENTRY: Final = "table"


def sofa_table(slots: Sequence[Slot], memory: Memory, epoch: Epoch) -> SofaTable:
    """SOFARegistry's form of the table.

    Args:
        slots: our rows.
        memory: the policy's memory.
        epoch: the epoch of our table.
    """
    led = {slot.slot_id: _sofa_slot(slot, slot.leader, memory) for slot in slots if slot.leader is not None}
    if not led:
        return INITIAL_TABLE
    remembered = memory.get(TABLE_ENTRY)
    return SofaTable(epoch if remembered is None else json.loads(remembered)[0], led)


def arranged_at(memory: Memory, epoch: Epoch) -> Epoch:
    """The epoch of ours in which the slots changed last; the current one if another policy arranged them."""
    remembered = memory.get(TABLE_ENTRY)
    return epoch if remembered is None else Epoch(json.loads(remembered)[1])


def greatest_epoch(table: SofaTable) -> int:
    """The greatest epoch of the table. Every epoch that is minted later is greater."""
    return max([0, table.epoch, *(slot.leader_epoch for slot in table.slots.values())])


def with_ranks(table: SofaTable, before: SofaTable) -> SofaTable:
    """The same table with the epochs minted since ``before`` renumbered without gaps, in their order."""
    base = greatest_epoch(before)
    epochs = {table.epoch, *(slot.leader_epoch for slot in table.slots.values())}
    minted = sorted(epoch for epoch in epochs if epoch > base)
    ranks = {epoch: base + rank for rank, epoch in enumerate(minted, start=1)}
    slots = {
        slot_id: replace(slot, leader_epoch=ranks.get(slot.leader_epoch, slot.leader_epoch))
        for slot_id, slot in table.slots.items()
    }
    return SofaTable(ranks.get(table.epoch, table.epoch), slots)


def rows(table: SofaTable, slots: Sequence[Slot], epoch: Epoch) -> tuple[Slot, ...]:
    """Our rows for a new table.

    Args:
        table: the new table.
        slots: our rows of the previous table.
        epoch: the epoch of our table with the new rows.
    """
    pairs = ((row, table.slots[row.slot_id]) for row in slots)
    return tuple(row.assigned(slot.leader, slot.followers, epoch) for row, slot in pairs)


def remembered(table: SofaTable, new_rows: Sequence[Slot], memory: Memory, epoch: Epoch) -> dict[str, str | None]:
    """The changes to the memory for a new table.

    Args:
        table: the new table.
        new_rows: our rows of it.
        memory: the present memory.
        epoch: the epoch of our table with these rows.
    """
    wanted: dict[str, str | None] = {TABLE_ENTRY: _text(table.epoch, epoch)}
    for row in new_rows:
        slot = table.slots[row.slot_id]
        order = () if slot.followers == row.followers else slot.followers
        says_all = not order and slot.leader_epoch == row.leader_epoch
        wanted[_slot_entry(row.slot_id)] = None if says_all else _text(slot.leader_epoch, *order)
    return {name: text for name, text in wanted.items() if memory.get(name) != text}


def kept_leader_epochs(slots: Sequence[Slot], memory: Memory) -> dict[str, str | None]:
    """The changes to the memory that keep SOFARegistry's leader epochs of rows whose leader epochs in our table rise.

    A slot with an entry has its leader epoch there already.

    Args:
        slots: these rows, with their former leader epochs.
        memory: the present memory.
    """
    return {entry: _text(row.leader_epoch) for row in slots if (entry := _slot_entry(row.slot_id)) not in memory}


def _sofa_slot(row: Slot, leader: str, memory: Memory) -> SofaSlot:
    text = memory.get(_slot_entry(row.slot_id))
    if text is None:
        return SofaSlot(row.slot_id, leader, row.leader_epoch, row.followers)
    leader_epoch, *order = json.loads(text)
    return SofaSlot(row.slot_id, leader, leader_epoch, tuple(order) or row.followers)


def _slot_entry(slot_id: SlotId) -> str:
    return f"slot/{slot_id}"


def _text(*values: int | str) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)

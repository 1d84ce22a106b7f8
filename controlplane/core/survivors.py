"""What becomes of the slot table while reconciliation is paused: nobody dead owns, and nothing else changes."""

from collections.abc import Set as AbstractSet

from controlplane.core.identifiers import Epoch, NodeId, SlotId
from controlplane.core.slot_table import Slot


def rows_of_survivors(
    slots: tuple[Slot, ...],
    living: AbstractSet[NodeId],
    ready: AbstractSet[tuple[SlotId, NodeId]],
    epoch: Epoch,
) -> tuple[Slot, ...]:
    """The rows that change when everybody who does not live is taken out, ascending by slot.

    A slot whose leader is gone is led by a surviving holder: by one that has all the data before one that does not,
    then by the one that leads the fewest slots, then by the first by name. A slot without survivors is left empty.

    Args:
        slots: the table.
        living: who may stay; nobody else is put in.
        ready: replicas that report to have all the data.
        epoch: of the table with these rows.
    """
    leads = dict.fromkeys(living, 0)
    for slot in slots:
        if slot.leader in leads:
            leads[slot.leader] += 1
    changed = []
    for slot in slots:
        survivors = [node_id for node_id in slot.replicas if node_id in living]
        if len(survivors) == len(slot.replicas):
            continue
        leader, leader_epoch = slot.leader, slot.leader_epoch
        if leader not in living:
            heirs = [((slot.slot_id, node_id) not in ready, leads[node_id], node_id) for node_id in survivors]
            leader, leader_epoch = min(heirs)[2] if heirs else None, epoch
            if leader is not None:
                leads[leader] += 1
        followers = tuple(sorted(node_id for node_id in survivors if node_id != leader))
        changed.append(Slot(slot.slot_id, leader, followers, leader_epoch))
    return tuple(changed)

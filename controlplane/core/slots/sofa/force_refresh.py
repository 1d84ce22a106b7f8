"""A new table from nothing but the list of nodes (BalanceTask): what an operator's forced refresh makes."""

from collections.abc import Sequence

from controlplane.core.slots.sofa.refusals import NothingToArrangeError
from controlplane.core.slots.sofa.table import EpochSource, SofaSlot, SofaTable


def round_robin(nodes: Sequence[str], slot_count: int, replicas: int, mint: EpochSource) -> SofaTable:
    """Slot leaders in turn, and followers in turn beginning with the last node; who held what does not matter.

    The result is not checked: with one node, or with three and more replicas, a slot leader also follows its slot.
    Each slot gets a leader epoch, by slot, and the table one after them.

    Args:
        nodes: the data nodes that there are, in the order in which they are known.
        slot_count: how many slots.
        replicas: of each slot, the leader included.
        mint: the source of epochs.

    Raises:
        NothingToArrangeError: there are no nodes.
    """
    if not nodes:
        raise NothingToArrangeError("there are no nodes to give slots to")
    cursor = len(nodes) - 1
    slots = {}
    for slot_id in range(slot_count):
        followers = []
        for _ in range(replicas - 1):
            followers.append(nodes[cursor % len(nodes)])
            cursor += 1
        slots[slot_id] = SofaSlot(slot_id, nodes[slot_id % len(nodes)], mint(), tuple(dict.fromkeys(followers)))
    return SofaTable(mint(), slots)

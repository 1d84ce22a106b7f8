"""A new table from the list of nodes alone (BalanceTask): the result of a refresh on an operator's request."""

from collections.abc import Sequence

from controlplane.core.slots.sofa.refusals import NothingToArrangeError
from controlplane.core.slots.sofa.table import EpochSource, SofaSlot, SofaTable


def round_robin(nodes: Sequence[str], slot_count: int, replicas: int, mint: EpochSource) -> SofaTable:
    """Assign slot leaders in turn, and followers in turn from the last node; the previous table does not matter.

    The result is not checked: with one node, or with three or more replicas, a slot leader also follows its slot. Each
    slot gets a leader epoch, in the order of slots, and the table the epoch after them.

    Args:
        nodes: the current data nodes, in the order in which they became known.
        slot_count: number of slots.
        replicas: replicas of each slot, the leader included.
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

"""The rows of the slot table: which node leads and which nodes follow each hash slot."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.values.canonical import later, union_member
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId


@union_member
@dataclass(frozen=True, slots=True)
class Slot:
    """One hash slot.

    Attributes:
        slot_id: 0 to slot_count - 1.
        leader: the node that serves it; None if there is no such node.
        followers: the other replicas, sorted by name.
        leader_epoch: the epoch in which ``leader`` or its process last changed; with the term it forms the slot's
            fencing token.
        next_leader: in a row of the routing table, the node that the leader has to release the slot to; None for none,
            and in the state, which has handoffs apart.
        release_epoch: likewise, the epoch in which the leader was told to release it; 0 if it was not.
    """

    slot_id: SlotId
    leader: NodeId | None
    followers: tuple[NodeId, ...]
    leader_epoch: Epoch
    next_leader: NodeId | None = field(default=None, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    release_epoch: Epoch = field(default=Epoch(0), metadata=later(since_level=HANDOFFS_FROM_LEVEL))

    @property
    def replicas(self) -> tuple[NodeId, ...]:
        """Every node that holds a copy, the slot leader first."""
        return self.followers if self.leader is None else (self.leader, *self.followers)

    def assigned(self, leader: NodeId | None, holders: Iterable[NodeId], epoch: Epoch) -> "Slot":
        """The row with another leader and other holders.

        Args:
            leader: the new leader; None if the slot has no holder.
            holders: the followers in any order; the leader may be among them.
            epoch: the epoch of the new table, which becomes the leader epoch if the leader changes.
        """
        followers = tuple(sorted({*holders} - {leader}))
        return Slot(self.slot_id, leader, followers, self.leader_epoch if leader == self.leader else epoch)


@dataclass(frozen=True, slots=True)
class NodeSlots:
    """The table seen from one node (SOFARegistry's DataNodeSlot)."""

    node_id: NodeId
    leads: tuple[SlotId, ...]
    follows: tuple[SlotId, ...]


def empty_table(slot_count: int) -> tuple[Slot, ...]:
    """The rows of a table that never had a node."""
    return tuple(Slot(SlotId(slot_id), None, (), Epoch(0)) for slot_id in range(slot_count))


def without_nodes(slots: tuple[Slot, ...], gone: AbstractSet[NodeId]) -> tuple[Slot, ...]:
    """The same rows without these nodes as leaders or followers. Rows that have none of them are not made anew."""
    return tuple(
        slot
        if gone.isdisjoint(slot.replicas)
        else replace(
            slot,
            leader=None if slot.leader in gone else slot.leader,
            followers=tuple(node_id for node_id in slot.followers if node_id not in gone),
        )
        for slot in slots
    )


def raise_leader_epochs(slots: tuple[Slot, ...], renewed: AbstractSet[NodeId], epoch: Epoch) -> tuple[Slot, ...]:
    """The same rows with ``epoch`` as the leader epoch of those that renewed nodes lead. Others are not made anew.

    The former process of such a node may serve until it reads the table, and two processes never serve under one token.
    """
    return tuple(replace(slot, leader_epoch=epoch) if slot.leader in renewed else slot for slot in slots)


def split_parts(slots: tuple[Slot, ...], slot_count: int, epoch: Epoch) -> tuple[Slot, ...]:
    """The rows that a table gains when each of its slots is split, by slot id.

    ``slot_count`` has to be a power of two times the current count. Both hash functions then map a key of slot s to one
    of the slots s + k * current count. Each of these parts starts with the row of s, so that no data has to move.
    """
    count = len(slots)
    return tuple(
        replace(slots[slot_id % count], slot_id=slot_id, leader_epoch=epoch) for slot_id in range(count, slot_count)
    )


def by_node(slots: tuple[Slot, ...]) -> dict[NodeId, NodeSlots]:
    """The inverted table: the slots that each node leads and follows, ascending, by name of the node."""
    leads: dict[NodeId, list[SlotId]] = {}
    follows: dict[NodeId, list[SlotId]] = {}
    for slot in slots:
        if slot.leader is not None:
            leads.setdefault(slot.leader, []).append(slot.slot_id)
        for follower in slot.followers:
            follows.setdefault(follower, []).append(slot.slot_id)
    return {
        node_id: NodeSlots(node_id, tuple(leads.get(node_id, ())), tuple(follows.get(node_id, ())))
        for node_id in sorted({*leads, *follows})
    }

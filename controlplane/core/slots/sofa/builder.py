"""A slot table under construction (SlotTableBuilder), with the view by node that the balancer iterates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from controlplane.core.slots.sofa.java_collections import JavaMap, copied_set, java_set
from controlplane.core.slots.sofa.refusals import TooManyFollowersError, UnassignedSlotError
from controlplane.core.slots.sofa.table import EpochSource, SofaSlot, SofaTable


@dataclass(slots=True)
class NodeView:
    """What one node leads and follows (DataNodeSlot)."""

    name: str
    leads: set[int] = field(default_factory=set)
    follows: set[int] = field(default_factory=set)


NodeOrder = Callable[[NodeView], tuple[int, int]]
"""The sort key of nodes; sorting is stable, so ties keep their order."""


def least_leaders_first(node: NodeView) -> tuple[int, int]:
    """Fewest leaderships, then fewest followers."""
    return len(node.leads), len(node.follows)


def most_leaders_first(node: NodeView) -> tuple[int, int]:
    """Most leaderships, then most followers."""
    return -len(node.leads), -len(node.follows)


def least_followers_first(node: NodeView) -> tuple[int, int]:
    """Fewest followers, then fewest leaderships."""
    return len(node.follows), len(node.leads)


def most_followers_first(node: NodeView) -> tuple[int, int]:
    """Most followers, then most leaderships."""
    return -len(node.follows), -len(node.leads)


class SlotInWork:
    """One slot of the table under construction (SlotBuilder)."""

    def __init__(self, slot_id: int, most_followers: int, mint: EpochSource, before: SofaSlot | None) -> None:
        self.slot_id = slot_id
        self.leader = before.leader if before else None
        self._leader_epoch = before.leader_epoch if before else 0
        self._most_followers = most_followers
        self._mint = mint
        self._followers: JavaMap[str, None] = java_set([])
        for follower in copied_set(list(before.followers)) if before else ():
            self.add_follower(follower)

    @property
    def followers(self) -> list[str]:
        """A copy, in the iteration order of a copy in Java."""
        return list(copied_set(list(self._followers)))

    @property
    def missing(self) -> int:
        """Number of missing followers."""
        return self._most_followers - len(self._followers)

    def set_leader(self, leader: str | None) -> None:
        """Set another leader, or none. A new leader gets a new leader epoch."""
        if leader != self.leader:
            self.leader = leader
            self._leader_epoch = self._mint()

    def follows(self, node: str) -> bool:
        """Whether a node follows the slot."""
        return node in self._followers

    def add_follower(self, node: str) -> None:
        """Add a follower; a node that already follows changes nothing.

        Raises:
            TooManyFollowersError: the slot has as many followers as it may.
        """
        if node in self._followers:
            return
        if self.missing <= 0:
            raise TooManyFollowersError(
                f"slot {self.slot_id} has more than {self._most_followers} followers: "
                "SOFARegistry cannot lower the number of replicas of a table that has them"
            )
        self._followers.put(node, None)

    def remove_follower(self, node: str) -> None:
        """Remove a follower."""
        self._followers.remove(node)

    def build(self) -> SofaSlot:
        """The slot as it is now.

        Raises:
            UnassignedSlotError: it has no leader.
        """
        if not self.leader:
            raise UnassignedSlotError(f"slot {self.slot_id} has no leader; followers {self.followers}")
        if self._leader_epoch <= 0:
            self._leader_epoch = self._mint()
        return SofaSlot(self.slot_id, self.leader, self._leader_epoch, tuple(self.followers))


class SlotTableBuilder:
    """A slot table under construction, which starts as a copy of another one.

    Args:
        before: the table to start from; slots beyond ``slot_count`` are dropped, new ones are empty.
        slot_count: number of slots.
        replicas: replicas of each slot, the leader included.
        nodes: the current nodes, in the order in which they became known; the others of ``before`` are purged.
        mint: the source of epochs.

    Raises:
        TooManyFollowersError: a slot of ``before`` has more followers than ``replicas`` allows.
    """

    def __init__(
        self, before: SofaTable, slot_count: int, replicas: int, nodes: Sequence[str], mint: EpochSource
    ) -> None:
        self.slot_count = slot_count
        self.replicas = replicas
        self._mint = mint
        self._epoch = 0
        self.slots = [
            SlotInWork(slot_id, replicas - 1, mint, before.slots.get(slot_id)) for slot_id in range(slot_count)
        ]
        self._views: JavaMap[str, NodeView] = JavaMap()
        for slot in self.slots:
            if slot.leader is not None:
                self._view(slot.leader).leads.add(slot.slot_id)
            for follower in slot.followers:
                self._view(follower).follows.add(slot.slot_id)
        for node in nodes:
            self._views.put_if_absent(node, NodeView(node))
        for gone in sorted(before.nodes.difference(nodes)):
            self._purge(gone)

    def view(self, node: str) -> NodeView:
        """The view of one node."""
        return self._views[node]

    def views_where(self, wanted: Callable[[NodeView], bool], order: NodeOrder) -> list[NodeView]:
        """The views that fulfil a condition, sorted; ties in Java's order."""
        return sorted(filter(wanted, self._views.values()), key=order)

    def mint_epoch(self) -> None:
        """Give the table a new epoch."""
        self._epoch = self._mint()

    def replace_leader(self, slot_id: int, leader: str) -> None:
        """Set another leader; the former one keeps no copy."""
        slot = self.slots[slot_id]
        before = slot.leader
        slot.set_leader(leader)
        slot.remove_follower(leader)
        if before is not None:
            self._views[before].leads.discard(slot_id)
        view = self._view(leader)
        view.leads.add(slot_id)
        view.follows.discard(slot_id)

    def add_follower(self, slot_id: int, node: str) -> None:
        """Add a follower."""
        self.slots[slot_id].add_follower(node)
        self._view(node).follows.add(slot_id)

    def move_follower(self, slot_id: int, giver: str, taker: str) -> None:
        """Replace a follower by another node."""
        self.slots[slot_id].remove_follower(giver)
        self._views[giver].follows.discard(slot_id)
        self.add_follower(slot_id, taker)

    def lacks_replicas(self) -> bool:
        """Whether a slot has no leader or too few followers."""
        return any(not slot.leader or slot.missing > 0 for slot in self.slots)

    def build(self) -> SofaTable:
        """The table as it is now.

        Raises:
            UnassignedSlotError: a slot has no leader.
        """
        built = {slot.slot_id: slot.build() for slot in self.slots}
        return SofaTable(max([self._epoch, *(slot.leader_epoch for slot in built.values())]), built)

    def _view(self, node: str) -> NodeView:
        return self._views.compute_if_absent(node, lambda: NodeView(node))

    def _purge(self, node: str) -> None:
        if node not in self._views:
            return
        view = self._views[node]
        for slot_id in view.follows:
            self.slots[slot_id].remove_follower(node)
        for slot_id in sorted(view.leads):
            self.slots[slot_id].set_leader(None)
        self._views.remove(node)

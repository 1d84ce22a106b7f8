"""Kafka's sticky assignors, for members that all subscribe to the same (``AbstractStickyAssignor``, KIP-54, KIP-429).

Every member keeps what it has, up to its quota: the mean rounded up for as many members as it takes, rounded down for
the others. What is then without an owner goes in order to the members under their quota, one each in turn.

More replicas: each copy of a slot is a partition of its own that may not meet its like on one member. Where every
member under its quota holds the slot already, the one that has least of all the others takes it. The longest holder
leads.
"""

from collections.abc import Sequence

from benchmarks.placers.contract import Table, empty_table
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.identifiers import NodeId


class Sticky:
    """Keep within quotas, then fill up."""

    name = "Kafka sticky"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._table = empty_table(slot_count)
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        members = [node.node_id for node in nodes]
        quota, longer = divmod(len(self._table) * self._replica_count, len(members))
        held = self._kept(members, quota, longer)
        slots = [
            [node_id for node_id in holders if slot_id in held.get(node_id, ())]
            for slot_id, holders in enumerate(self._table)
        ]
        rotation = _Rotation(held, quota, longer)
        for slot_id, holders in enumerate(slots):
            while len(holders) < self._replica_count:
                node_id = rotation.next_without(slot_id)
                held[node_id].add(slot_id)
                holders.append(node_id)
        self._table = tuple(tuple(holders) for holders in slots)
        return [self._table]

    def _kept(self, members: Sequence[NodeId], quota: int, longer: int) -> dict[NodeId, set[int]]:
        """What each member keeps: its first slots, up to its quota."""
        owned: dict[NodeId, list[int]] = {member: [] for member in members}
        for slot_id, holders in enumerate(self._table):
            for node_id in holders:
                if node_id in owned:
                    owned[node_id].append(slot_id)
        kept = {}
        for member in members:
            most = quota
            if len(owned[member]) > quota and longer > 0:
                most, longer = quota + 1, longer - 1
            kept[member] = set(owned[member][:most])
        return kept


class _Rotation:
    """The turns of the members under their quota."""

    def __init__(self, held: dict[NodeId, set[int]], quota: int, longer: int) -> None:
        self._held = held
        self._quota = quota
        self._longer = longer
        self._place = {member: place for place, member in enumerate(held)}
        self._turn = 0

    def next_without(self, slot_id: int) -> NodeId:
        """The next member that may take one more and does not hold this slot."""
        free = [member for member in self._under_quota() if slot_id not in self._held[member]]
        if not free:
            others = [member for member in self._held if slot_id not in self._held[member]]
            return min(others, key=lambda member: (len(self._held[member]), member))
        chosen = min(free, key=lambda member: (self._place[member] - self._turn) % len(self._place))
        self._turn = self._place[chosen] + 1
        return chosen

    def _under_quota(self) -> list[NodeId]:
        """The members under the mean rounded down; if there are none, those that may have one more."""
        under = [member for member, slots in self._held.items() if len(slots) < self._quota]
        if under:
            return under
        longer = sum(len(slots) > self._quota for slots in self._held.values())
        if longer >= self._longer:
            return []
        return [member for member, slots in self._held.items() if len(slots) == self._quota]

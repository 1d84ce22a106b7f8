"""Consistent hashing: Karger and others, STOC 1997; 500 virtual nodes a node is what HiveMQ's ring has.

A slot belongs to the first virtual node at or after its own place on the ring, and its other replicas to the next nodes
after that, as in Dynamo (SOSP 2007). HiveMQ hashes with xxHash and gives every node the same number of places; another
good hash gives another ring with the same properties.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from benchmarks.placers.contract import Table, stable_hash
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.identifiers import NodeId

VIRTUAL_NODES: Final = 500


class Ring:
    """The ring. It has no memory: the table follows from the names."""

    name = "ring, 500 virtual nodes"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._places = [stable_hash(f"slot {slot_id}") for slot_id in range(slot_count)]
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        ring = sorted(
            (stable_hash(f"{node.node_id}/{index}"), node.node_id) for node in nodes for index in range(VIRTUAL_NODES)
        )
        return [tuple(self._from(ring, bisect_left(ring, (place, ""))) for place in self._places)]

    def _from(self, ring: list[tuple[int, NodeId]], start: int) -> tuple[NodeId, ...]:
        holders: dict[NodeId, None] = {}
        index = start
        while len(holders) < self._replica_count:
            holders[ring[index % len(ring)][1]] = None
            index += 1
        return tuple(holders)

"""One ring of HiveMQ (its ``ConsistentHashingRing``): 500 virtual nodes for each node, in the order of signed hashes.

The owner of a key is the node of the first virtual node at or after the key's hash. Behind the greatest hash the ring
begins again at the least one.

The names of virtual nodes have no separator, so nodes such as ``n1`` and ``n11`` share some of them, and with them the
places on the ring. What happens then is HiveMQ's, quirks included:

- A node that joins takes a shared place only if the name that is there sorts after its own name and the digit 1,
  whatever the index. It therefore leaves the places of its virtual nodes 0 and 1 to the nodes that had them.
- A node that leaves takes its 500 places with it, also those that other nodes have by then.

A ring thus depends on the order in which such nodes came and went. Rings of names that share nothing depend on the set
of nodes only.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.core.slots.ring.text_hash import places_of, text_hash, utf16_order, virtual_node_name
from controlplane.errors import NoRouteError


@dataclass(frozen=True, slots=True)
class VirtualNode:
    """A virtual node that has a place on the ring: the one of this index, 0 to 499, of a node."""

    node: str
    index: int

    @property
    def name(self) -> str:
        """Its name, by which its place was found."""
        return virtual_node_name(self.node, self.index)


class HashRing:
    """A ring that nodes join and leave. A join or a leave takes 500 steps, and the first answer after it sorts.

    Args:
        nodes: the first nodes, in the order in which they join.
    """

    def __init__(self, nodes: Iterable[str] = ()) -> None:
        self._taken: dict[int, VirtualNode] = {}
        self._nodes: set[str] = set()
        self._places: list[int] | None = None
        for node in nodes:
            self.add(node)

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that have joined, those that have lost all their places to others included."""
        return frozenset(self._nodes)

    def __len__(self) -> int:
        """The number of places that are taken; 500 for each node, less the shared ones."""
        return len(self._taken)

    def add(self, node: str) -> None:
        """Let a node join."""
        self._places = None
        limit = utf16_order(f"{node}1")
        for index, place in enumerate(places_of(node)):
            present = self._taken.get(place)
            if present is None or utf16_order(present.name) > limit:
                self._taken[place] = VirtualNode(node, index)
                self._nodes.add(node)

    def remove(self, node: str) -> None:
        """Let a node leave; an unknown one may do so, too, and takes the places that it would have had."""
        self._places = None
        for place in places_of(node):
            self._taken.pop(place, None)
        self._nodes.discard(node)

    def virtual_node(self, key: str) -> VirtualNode:
        """The virtual node of a key.

        Raises:
            NoRouteError: the ring is empty.
            TypeError: the key is not a text.
        """
        return self._taken[self._sorted()[self._start(key)]]

    def owner(self, key: str) -> str:
        """The node that owns a key.

        Raises:
            NoRouteError: the ring is empty.
            TypeError: the key is not a text.
        """
        return self.virtual_node(key).node

    def replicas(self, key: str, count: int) -> frozenset[str]:
        """The nodes beside the owner that have a copy of a key: the next other nodes on the ring.

        Args:
            key: the key.
            count: how many; at most all other nodes are found, and none for a count below 1. Fewer are found if nodes
                have lost all their places to others (HiveMQ searches for them without end).

        Raises:
            NoRouteError: the ring is empty.
            TypeError: the key is not a text.
        """
        places, start = self._sorted(), self._start(key)
        owner = self._taken[places[start]].node
        wanted = min(count, len(self._nodes) - 1)
        found: set[str] = set()
        for index in range(start + 1, start + len(places)):
            if len(found) >= wanted:
                break
            node = self._taken[places[index % len(places)]].node
            if node != owner:
                found.add(node)
        return frozenset(found)

    def _start(self, key: str) -> int:
        """The index of a key's virtual node among the sorted places."""
        place = text_hash(key)
        places = self._sorted()
        if not places:
            raise NoRouteError("no node is on the ring, so no key has an owner: wait for the first node")
        return bisect_left(places, place) % len(places)

    def _sorted(self) -> list[int]:
        if self._places is None:
            self._places = sorted(self._taken)
        return self._places

"""Chooses a node for a bundle: the one with the fewest bundles, ties to the first name."""

from heapq import heapify, heappop, heappush, heapreplace

from controlplane.core.bundles.image import BundlesImage
from controlplane.core.values.identifiers import NodeId


class FewestBundles:
    """The choice for the bundles of one decision, each of which counts for the next choice."""

    def __init__(self, bundles: BundlesImage, owner_ids: frozenset[NodeId]) -> None:
        """Begin with the bundles that nodes own or are to own."""
        self._bundles = bundles
        self._owner_ids = owner_ids
        self._by_count: list[tuple[int, NodeId]] | None = None

    def choose(self, *, rather_not: NodeId | None = None) -> NodeId | None:
        """The node for a bundle, which is counted for it from now on; None if no node may own bundles.

        Args:
            rather_not: a node that is chosen only if there is no other.
        """
        heap = self._counted()
        if not heap:
            return None
        count, chosen = heappop(heap)
        if chosen == rather_not and heap:
            passed_by = count, chosen
            count, chosen = heapreplace(heap, passed_by)
        heappush(heap, (count + 1, chosen))
        return chosen

    def _counted(self) -> list[tuple[int, NodeId]]:
        """A heap of the nodes by the number of their bundles, then by name, so that a choice does not look at all."""
        if self._by_count is None:
            counts = self._bundles.bundle_counts
            self._by_count = [(counts[name], name) for name in self._owner_ids]
            heapify(self._by_count)
        return self._by_count

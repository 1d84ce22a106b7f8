"""Chooses a node for a bundle: the one with the fewest bundles, ties to the first name."""

from collections import Counter

from controlplane.core.bundles.image import BundlesImage
from controlplane.core.values.identifiers import NodeId


class FewestBundles:
    """The choice for the bundles of one decision, each of which counts for the next choice."""

    def __init__(self, bundles: BundlesImage, owner_ids: frozenset[NodeId]) -> None:
        """Begin with the bundles that nodes own or are to own."""
        self._bundles = bundles
        self._owner_ids = owner_ids
        self._counts: Counter[NodeId] | None = None

    def choose(self, *, rather_not: NodeId | None = None) -> NodeId | None:
        """The node for a bundle, which is counted for it from now on; None if no node may own bundles.

        Args:
            rather_not: a node that is chosen only if there is no other.
        """
        others = self._owner_ids - {rather_not}
        counts = self._counted()
        chosen = min(others or self._owner_ids, key=lambda name: (counts[name], name), default=None)
        if chosen is not None:
            counts[chosen] += 1
        return chosen

    def _counted(self) -> Counter[NodeId]:
        if self._counts is None:
            self._counts = self._bundles.bundle_counts.copy()
        return self._counts

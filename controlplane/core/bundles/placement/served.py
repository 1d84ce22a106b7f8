"""Which bundles each node serves, by namespace (Pulsar's BundleRangeCache)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controlplane.core.bundles.load.view import NodeView
from controlplane.core.bundles.names import namespace_of, range_of
from controlplane.core.values.ordered_map import OrderedMap


@dataclass(frozen=True, slots=True)
class ServedBundles:
    """An index of bundles by node and namespace.

    Attributes:
        ranges: node -> namespace -> the ranges of its bundles there, at least one.
    """

    ranges: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)

    def count(self, node_id: str, namespace: str) -> int:
        """How many bundles of the namespace the node serves."""
        return len(self.ranges.get(node_id, {}).get(namespace, ()))

    def namespaces(self, node_id: str) -> Iterable[str]:
        """The namespaces of which the node serves a bundle."""
        return self.ranges.get(node_id, {})

    def add(self, node_id: str, bundle_id: str) -> "ServedBundles":
        """The index with one more bundle."""
        of_node = self.ranges.get(node_id, {})
        namespace = namespace_of(bundle_id)
        ranges = of_node.get(namespace, frozenset()) | {range_of(bundle_id)}
        namespaces = OrderedMap.of(of_node).put([(namespace, ranges)])
        return ServedBundles(OrderedMap.of(self.ranges).put([(node_id, namespaces)]))


def served_bundles(bundles_by_node: Mapping[str, Iterable[str]]) -> ServedBundles:
    """The index of these bundles."""
    index: dict[str, dict[str, set[str]]] = {}
    for node_id, bundle_ids in bundles_by_node.items():
        of_node = index.setdefault(node_id, {})
        for bundle_id in bundle_ids:
            of_node.setdefault(namespace_of(bundle_id), set()).add(range_of(bundle_id))
    return ServedBundles(
        {
            node_id: {namespace: frozenset(ranges) for namespace, ranges in of_node.items()}
            for node_id, of_node in index.items()
        }
    )


def reported_and_preallocated(nodes: Mapping[str, NodeView]) -> ServedBundles:
    """The index of what is known: the bundles in the latest reports, and those that nodes have not reported yet."""
    return served_bundles({node_id: (*node.load.stats, *node.preallocated) for node_id, node in nodes.items()})

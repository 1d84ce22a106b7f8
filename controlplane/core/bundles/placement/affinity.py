"""The node that an operator named for a bundle when it was unloaded (``unload --dest``)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controlplane.core.bundles.names import range_of
from controlplane.core.values.ordered_map import OrderedMap


@dataclass(frozen=True, slots=True)
class Affinities:
    """The named nodes. Each is used once, by the next assignment of its bundle, before any selection.

    Attributes:
        keyed_by_range_only: bundles of different namespaces with the same range share one entry, so that an assignment
            of another namespace can use it up (Pulsar's quirk E). Off: each bundle has its own.
        nodes: by bundle, or by range, the named node.
    """

    keyed_by_range_only: bool
    nodes: Mapping[str, str] = field(default_factory=dict)

    def remember(self, bundle_id: str, node_id: str) -> "Affinities":
        """The affinities with one more; it replaces an earlier one of the same key."""
        return replace(self, nodes=OrderedMap.of(self.nodes).put([(self._key(bundle_id), node_id)]))

    def node_of(self, bundle_id: str) -> str | None:
        """The named node; None if there is none."""
        return self.nodes.get(self._key(bundle_id))

    def without(self, bundle_id: str) -> "Affinities":
        """The affinities after the bundle's one was used."""
        key, nodes = self._key(bundle_id), OrderedMap.of(self.nodes)
        return replace(self, nodes=nodes.drop([key])) if key in nodes else self

    def _key(self, bundle_id: str) -> str:
        return range_of(bundle_id) if self.keyed_by_range_only else bundle_id

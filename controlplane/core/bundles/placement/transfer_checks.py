"""What a transfer shedder asks of owners, policies and filters, answered from the context of placement."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.placement.anti_affinity import group_of
from controlplane.core.bundles.placement.context import ExtensibleContext
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement


@dataclass(frozen=True, slots=True)
class PlacementChecks:
    """The ``TransferChecks`` of the leader of the extensible manager (Pulsar's isTransferable).

    A bundle is transferred only to a node that the selection of a node could choose for it.

    Attributes:
        selection: the selection; its filters are asked, its strategy is not.
        context: owners, registered nodes, loads, and what operators have set.
        non_persistent: the bundles that hold a non-persistent topic.
    """

    selection: ExtensiblePlacement[Any]
    context: ExtensibleContext
    non_persistent: AbstractSet[str] = frozenset()

    def owns(self, node_id: str, bundle_id: str) -> bool:
        """Whether the node is the bundle's owner, and the bundle neither moves nor is split."""
        return self.context.owners.get(bundle_id) == node_id

    def has_policies(self, namespace: str) -> bool:
        """Whether an isolation policy holds for the namespace, or it is in an anti-affinity group."""
        rules = self.context.rules
        return rules.isolation.of(namespace) is not None or group_of(namespace, rules.groups) is not None

    def allowed_nodes(self, bundle_id: str, nodes: AbstractSet[str]) -> AbstractSet[str] | None:
        """The nodes that all filters leave for the bundle; None if a filter failed, unlike in a selection."""
        bundle = BundleToPlace(bundle_id, BundleHistory(UNSEEN_BUNDLE), bundle_id in self.non_persistent)
        candidates = tuple(node_id for node_id in self.context.registered if node_id in nodes)
        steps = self.selection.filtered(bundle, candidates, self.context)
        return None if any(step.failure is not None for step in steps) else frozenset(steps[-1].kept)

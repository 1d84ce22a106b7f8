"""The filters by topics, by load manager, and by even distribution."""

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.core.bundles.placement.context import ModularContext, NodeFacts
from controlplane.core.bundles.placement.contract import BundleToPlace, Dropped, Filtering, keep_least
from controlplane.core.bundles.settings.allowed import ONE_OR_MORE
from controlplane.core.bundles.settings.knobs import knob


@dataclass(frozen=True, slots=True)
class TopicCountFilter:
    """Drop the nodes with many topics.

    Attributes:
        max_topics: the greatest number of topics.
        drops_at_limit: a node with exactly so many topics is dropped (extensible); otherwise it is kept (modular).
        keeps_all_if_none: if no candidate is below the limit, the filter keeps all (modular); otherwise none
            (extensible).
    """

    max_topics: int = knob("loadBalancerBrokerMaxTopics", 50_000, ONE_OR_MORE)
    drops_at_limit: bool = False
    keeps_all_if_none: bool = True
    name: str = "topic-count"

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: NodeFacts) -> Filtering:  # noqa: ARG002
        """The nodes within the limit."""
        kept: list[str] = []
        dropped: list[Dropped] = []
        for node_id in candidates:
            count = context.topic_count(node_id)
            if count > self.max_topics or (self.drops_at_limit and count == self.max_topics):
                dropped.append(Dropped(node_id, count, self.max_topics))
            else:
                kept.append(node_id)
        if not kept and self.keeps_all_if_none:
            return Filtering(self.name, tuple(candidates))
        return Filtering(self.name, tuple(kept), tuple(dropped))


@dataclass(frozen=True, slots=True)
class ManagerFilter:
    """Drop the nodes that run another load manager; a node of which nothing is known stays.

    Attributes:
        manager: class name of the load manager.
    """

    manager: str
    name: str = "load-manager"

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: NodeFacts) -> Filtering:  # noqa: ARG002
        """The nodes with this load manager."""
        kept: list[str] = []
        dropped: list[Dropped] = []
        for node_id in candidates:
            found = context.manager(node_id)
            if found is None or found == self.manager:
                kept.append(node_id)
            else:
                dropped.append(Dropped(node_id, found, self.manager))
        return Filtering(self.name, tuple(kept), tuple(dropped))


@dataclass(frozen=True, slots=True)
class EvenDistributionFilter:
    """Keep the nodes with the fewest bundles of the bundle's namespace (Pulsar's removeMostServicingBrokers)."""

    name: str = "even-distribution"

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: ModularContext) -> Filtering:
        """The nodes with the least count."""
        namespace = bundle.namespace
        return keep_least(
            self.name, candidates, {node_id: context.served.count(node_id, namespace) for node_id in candidates}
        )

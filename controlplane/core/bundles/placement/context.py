"""What filters and strategies read, under the modular and under the extensible load manager."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.names import namespace_of
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.isolation import NO_ISOLATION, IsolationPolicies
from controlplane.core.bundles.placement.served import ServedBundles, reported_and_preallocated


@dataclass(frozen=True, slots=True)
class PlacementPolicies:
    """What operators have set for namespaces and nodes.

    Attributes:
        isolation: the isolation policies, in the order in which they are tried.
        groups: namespace -> its anti-affinity group; a blank name is no group.
        domains: node -> its failure domain.
    """

    isolation: IsolationPolicies = NO_ISOLATION
    groups: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, str] = field(default_factory=dict)


class NodeFacts(Protocol):
    """What a filter can ask about nodes. Both contexts answer it, each from its own sources."""

    @property
    def rules(self) -> PlacementPolicies:
        """What operators have set."""
        ...

    def topic_count(self, node_id: str) -> int:
        """Topics of the node; 0 without a load."""
        ...

    def version(self, node_id: str) -> str | None:
        """The version of its software, as it says; None if nothing is known of the node."""
        ...

    def manager(self, node_id: str) -> str | None:
        """The class name of its load manager; None if nothing is known of the node."""
        ...

    def takes(self, node_id: str, *, non_persistent: bool) -> bool:
        """Whether the node serves topics of this kind; False if nothing is known of it."""
        ...

    def group_counts(self, group: AbstractSet[str]) -> Mapping[str, int]:
        """By node, how much of these namespaces it serves already; nodes that serve nothing may be missing."""
        ...


@dataclass(frozen=True, slots=True)
class ModularContext:
    """The leader's knowledge under the modular load manager.

    Attributes:
        loads: what the leader knows of nodes and bundles, and which bundles it has assigned lately.
        available: the registered nodes, in the order in which candidates are scanned and ties are broken.
        served: the bundles of each node, preallocated ones included.
        rules: what operators have set.
    """

    loads: LeaderLoads
    available: Sequence[str]
    served: ServedBundles
    rules: PlacementPolicies = field(default_factory=PlacementPolicies)

    @property
    def view(self) -> LoadView:
        """The loads as strategies see them."""
        return self.loads.view()

    def topic_count(self, node_id: str) -> int:
        """Topics in the node's report and in its preallocated bundles."""
        node = self.loads.nodes.get(node_id)
        if node is None:
            return 0
        return node.load.topic_count + sum(bundle.topic_count for bundle in node.preallocated.values())

    def version(self, node_id: str) -> str | None:
        """As in its report."""
        node = self.loads.nodes.get(node_id)
        return None if node is None else node.load.version

    def manager(self, node_id: str) -> str | None:
        """As in its report."""
        node = self.loads.nodes.get(node_id)
        return None if node is None else node.load.manager

    def takes(self, node_id: str, *, non_persistent: bool) -> bool:
        """As in its report."""
        node = self.loads.nodes.get(node_id)
        if node is None:
            return False
        return node.load.takes_non_persistent_topics if non_persistent else node.load.takes_persistent_topics

    def group_counts(self, group: AbstractSet[str]) -> Mapping[str, int]:
        """How many of these namespaces the node serves a bundle of."""
        counts = {node_id: len(group & spaces.keys()) for node_id, spaces in self.served.ranges.items()}
        return {node_id: count for node_id, count in counts.items() if count}

    def with_preallocated(self, node_id: str, bundle: BundleToPlace) -> "ModularContext":
        """The context after a node was chosen for a bundle: it counts as served there until reports say otherwise."""
        loads = self.loads.preallocated(bundle.bundle_id, node_id, bundle.history)
        return ModularContext(loads, self.available, self.served.add(node_id, bundle.bundle_id), self.rules)


def modular_context(
    loads: LeaderLoads, available: Sequence[str], rules: PlacementPolicies | None = None
) -> ModularContext:
    """The context of loads; a node serves what it has reported and what is preallocated to it."""
    return ModularContext(loads, available, reported_and_preallocated(loads.nodes), rules or PlacementPolicies())


class RegisteredNode(NamedTuple):
    """What a node wrote into the registry (Pulsar's BrokerLookupData)."""

    version: str
    manager: str
    takes_persistent_topics: bool = True
    takes_non_persistent_topics: bool = True


@dataclass(frozen=True)
class ExtensibleContext:
    """The knowledge of a node under the extensible load manager.

    Attributes:
        registered: the registered nodes, in the order in which candidates are scanned and ties are broken.
        loads: the stored load by node.
        owners: bundle -> its node, for the bundles in state *owned* alone.
        rules: what operators have set.
    """

    registered: Mapping[str, RegisteredNode]
    loads: Mapping[str, StoredLoad] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    rules: PlacementPolicies = field(default_factory=PlacementPolicies)

    def topic_count(self, node_id: str) -> int:
        """As in its stored load."""
        load = self.loads.get(node_id)
        return 0 if load is None else load.topic_count

    def version(self, node_id: str) -> str | None:
        """As in the registry."""
        node = self.registered.get(node_id)
        return None if node is None else node.version

    def manager(self, node_id: str) -> str | None:
        """As in the registry."""
        node = self.registered.get(node_id)
        return None if node is None else node.manager

    def takes(self, node_id: str, *, non_persistent: bool) -> bool:
        """As in the registry."""
        node = self.registered.get(node_id)
        if node is None:
            return False
        return node.takes_non_persistent_topics if non_persistent else node.takes_persistent_topics

    def group_counts(self, group: AbstractSet[str]) -> Mapping[str, int]:
        """How many bundles of these namespaces the node owns: a namespace with four bundles can count four times."""
        counts = Counter[str]()
        for namespace in group:
            counts.update(self._owned_by_namespace.get(namespace, {}))
        return counts

    @cached_property
    def _owned_by_namespace(self) -> Mapping[str, Mapping[str, int]]:
        """Namespace -> node -> the number of its bundles: one pass over all bundles for many questions."""
        counts: dict[str, Counter[str]] = {}
        for bundle_id, node_id in self.owners.items():
            counts.setdefault(namespace_of(bundle_id), Counter())[node_id] += 1
        return counts

"""The selection of a node under the modular load manager (Pulsar's ModularLoadManagerImpl).

The steps, in this order: isolation policies, topic count, anti-affinity, even distribution, then the pipeline (load
manager, version, filters of users), then the strategy. A pipeline that fails or leaves nothing has no effect at all.
If the chosen node is overloaded, the strategy chooses again among all nodes that the isolation policies allow.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from controlplane.core.bundles.load.resource_usage import ResourceWeights, measured_usage
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.names import SYSTEM_NAMESPACE
from controlplane.core.bundles.placement.affinity import Affinities
from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter
from controlplane.core.bundles.placement.context import ModularContext
from controlplane.core.bundles.placement.contract import (
    BundleToPlace,
    Filtering,
    MissingLoadError,
    NodeFilter,
    PlacementStrategy,
)
from controlplane.core.bundles.placement.filters import EvenDistributionFilter, ManagerFilter, TopicCountFilter
from controlplane.core.bundles.placement.isolation import IsolationFilter
from controlplane.core.bundles.placement.picks import Pick, picked
from controlplane.core.bundles.placement.round_robin import RoundRobin, RoundRobinMemory
from controlplane.core.bundles.placement.version import VersionFilter
from controlplane.core.bundles.settings.allowed import ONE_OR_MORE, THRESHOLD_PERCENT
from controlplane.core.bundles.settings.knobs import knob
from controlplane.core.bundles.settings.managers import MODULAR_MANAGER

M = TypeVar("M")
RESTORED: Final = "restored"
"""Names the step that brings back every node which the isolation policies allow."""
_ROUND_ROBIN: Final = RoundRobin()


@dataclass(frozen=True, slots=True)
class ModularPlacementSettings:
    """Settings of the selection. The defaults are Pulsar's, without its quirks.

    Attributes:
        max_topics: a node with more topics is dropped unless all have more.
        uses_domains: anti-affinity counts failure domains first.
        distributes_evenly: keep the nodes with the fewest bundles of the namespace; for the system namespace always.
        manager: class name of the load manager, in full.
        drops_other_managers: a node that runs another load manager is dropped, unless all do (Pulsar 4).
        prefers_later_versions: keep the nodes with the latest version.
        excluded_namespaces: their bundles are never shed, and are placed in turn instead of by the strategy.
        overloaded_percent: the strategy chooses again if the usage of the chosen node is greater.
        weights: weights of the resources in that usage.
        compares_unweighted_usage: the usage is the greatest of all resources, heap memory included (Pulsar 2).
        checks_loads: a chosen node without a report counts as not overloaded. Off is Pulsar's behaviour, an error.
        skips_names_without_port: as in :class:`IsolationFilter`.
        shares_named_nodes_by_range: quirk E: bundles of different namespaces with the same range share the node that an
            operator named for one of them.
        follows_preallocation_to_missing_node: a quirk: a bundle that was chosen for a node before goes there although
            the node is not registered any more. Off, it is placed anew.
    """

    max_topics: int = knob("loadBalancerBrokerMaxTopics", 50_000, ONE_OR_MORE)
    uses_domains: bool = knob("failureDomainsEnabled", default=False)
    distributes_evenly: bool = knob("loadBalancerDistributeBundlesEvenlyEnabled", default=True)
    manager: str = knob("loadManagerClassName", MODULAR_MANAGER)
    prefers_later_versions: bool = knob("preferLaterVersions", default=False)
    excluded_namespaces: Collection[str] = knob("loadBalancerSheddingExcludedNamespaces", frozenset())
    overloaded_percent: float = knob("loadBalancerBrokerOverloadedThresholdPercentage", 85, THRESHOLD_PERCENT)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    compares_unweighted_usage: bool = False
    drops_other_managers: bool = False
    checks_loads: bool = True
    skips_names_without_port: bool = False
    shares_named_nodes_by_range: bool = False
    follows_preallocation_to_missing_node: bool = False


@dataclass(frozen=True, slots=True)
class PlacementMemory(Generic[M]):
    """What the modular selection remembers: the strategy's memory, the turn of excluded namespaces, affinities."""

    strategy: M
    round_robin: RoundRobinMemory = field(default_factory=RoundRobinMemory)
    affinities: Affinities = field(default_factory=lambda: Affinities(keyed_by_range_only=True))


@dataclass(frozen=True, slots=True)
class Placement(Generic[M]):
    """The node for a bundle, with the evidence.

    Attributes:
        node_id: the node; None if no node may take the bundle.
        steps: each filter's answer, in order.
        picks: each choice of a strategy, in order; two if the first node was overloaded.
        overload: usage of the node of the first pick where it exceeded the threshold; 1.0 means 100 percent.
        memory: the memory after the selection.
    """

    node_id: str | None
    steps: tuple[Filtering, ...]
    picks: tuple[Pick, ...]
    overload: float | None
    memory: PlacementMemory[M]


@dataclass(frozen=True, slots=True)
class ModularPlacement(Generic[M]):
    """The selection with its strategy, its settings, and filters of users, which come last in the pipeline."""

    strategy: PlacementStrategy[LoadView, M]
    settings: ModularPlacementSettings = field(default_factory=ModularPlacementSettings)
    user_filters: tuple[NodeFilter[ModularContext], ...] = ()

    @property
    def first_memory(self) -> PlacementMemory[M]:
        """The memory before the first selection."""
        affinities = Affinities(keyed_by_range_only=self.settings.shares_named_nodes_by_range)
        return PlacementMemory(self.strategy.first_memory, affinities=affinities)

    def place(
        self, bundle: BundleToPlace, context: ModularContext, memory: PlacementMemory[M], draws: tuple[float, float]
    ) -> Placement[M]:
        """The node for a bundle (Pulsar's selectBroker).

        Args:
            bundle: the bundle.
            context: the leader's knowledge.
            memory: the memory after the previous selection.
            draws: random numbers, at least 0 and below 1, for the first pick and for the one after an overload.

        Raises:
            MissingLoadError: loads are not checked, and a rule needs one that is missing.
        """
        steps = self._filter(bundle, context)
        allowed, candidates = steps[0].kept, steps[-1].kept
        if bundle.namespace in self.settings.excluded_namespaces:
            first, turn = picked(_ROUND_ROBIN, bundle, candidates, context.view, draws[0], memory.round_robin)
            memory = replace(memory, round_robin=turn)
        else:
            first, memory = self._pick(bundle, candidates, context, memory, draws[0])
        overload = self._overload(first.node_id, context)
        if overload is None:
            return Placement(first.node_id, steps, (first,), None, memory)
        second, memory = self._pick(bundle, allowed, context, memory, draws[1])
        return Placement(second.node_id or first.node_id, steps, (first, second), overload, memory)

    def allowed(self, bundle: BundleToPlace, context: ModularContext) -> Filtering:
        """The registered nodes that the isolation policies allow for a bundle."""
        return IsolationFilter(self.settings.skips_names_without_port).keep(bundle, context.available, context)

    def follows_preallocation(self, node_id: str, context: ModularContext) -> bool:
        """Whether a bundle that was chosen for the node before goes there."""
        return self.settings.follows_preallocation_to_missing_node or node_id in context.available

    def _pick(
        self,
        bundle: BundleToPlace,
        candidates: Sequence[str],
        context: ModularContext,
        memory: PlacementMemory[M],
        draw: float,
    ) -> tuple[Pick, PlacementMemory[M]]:
        pick, after = picked(self.strategy, bundle, candidates, context.view, draw, memory.strategy)
        return pick, replace(memory, strategy=after)

    def _filter(self, bundle: BundleToPlace, context: ModularContext) -> tuple[Filtering, ...]:
        allowed = self.allowed(bundle, context)
        steps = [allowed]
        for each in self._rules(bundle):
            steps.append(each.keep(bundle, steps[-1].kept, context))
        for each in self._pipeline():
            steps.append(each.keep(bundle, steps[-1].kept, context))
            if steps[-1].failure is not None:
                steps.append(Filtering(RESTORED, allowed.kept))
                break
        if not steps[-1].kept:
            steps.append(Filtering(RESTORED, allowed.kept))
        return tuple(steps)

    def _rules(self, bundle: BundleToPlace) -> tuple[NodeFilter[ModularContext], ...]:
        settings = self.settings
        always = (TopicCountFilter(settings.max_topics), AntiAffinityFilter(settings.uses_domains))
        if settings.distributes_evenly or bundle.namespace == SYSTEM_NAMESPACE:
            return (*always, EvenDistributionFilter())
        return always

    def _pipeline(self) -> tuple[NodeFilter[ModularContext], ...]:
        settings = self.settings
        managers = (ManagerFilter(settings.manager),) if settings.drops_other_managers else ()
        return (*managers, *((VersionFilter(),) if settings.prefers_later_versions else ()), *self.user_filters)

    def _overload(self, node_id: str | None, context: ModularContext) -> float | None:
        if node_id is None:
            return None
        node = context.loads.nodes.get(node_id)
        if node is None:
            if self.settings.checks_loads:
                return None
            raise MissingLoadError(node_id)
        usage = measured_usage(node.load, self.settings.weights, unweighted=self.settings.compares_unweighted_usage)
        return usage if usage > self.settings.overloaded_percent / 100.0 else None

"""The selection of a node under the extensible load manager (Pulsar's ExtensibleLoadManagerImpl.selectAsync).

There is neither an even distribution nor a preallocation. A filter that fails is passed over: the next one goes on with
the candidates that it left.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from controlplane.core.bundles.placement.anti_affinity import AntiAffinityFilter
from controlplane.core.bundles.placement.context import ExtensibleContext
from controlplane.core.bundles.placement.contract import BundleToPlace, Filtering, NodeFilter, PlacementStrategy
from controlplane.core.bundles.placement.filters import ManagerFilter, TopicCountFilter
from controlplane.core.bundles.placement.isolation import IsolationFilter
from controlplane.core.bundles.placement.modular import Pick, picked
from controlplane.core.bundles.placement.version import VersionFilter
from controlplane.core.bundles.settings.allowed import ONE_OR_MORE
from controlplane.core.bundles.settings.knobs import knob
from controlplane.core.bundles.settings.managers import EXTENSIBLE_MANAGER

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class ExtensiblePlacementSettings:
    """Settings of the selection. The defaults are Pulsar's, without its quirks.

    Attributes:
        max_topics: a node with so many topics or more is dropped.
        uses_domains: anti-affinity counts failure domains first.
        manager: class name of the load manager that a node has to run.
        prefers_later_versions: keep the nodes with the latest version.
        skips_names_without_port: as in :class:`IsolationFilter`.
    """

    max_topics: int = knob("loadBalancerBrokerMaxTopics", 50_000, ONE_OR_MORE)
    uses_domains: bool = knob("failureDomainsEnabled", default=False)
    manager: str = knob("loadManagerClassName", EXTENSIBLE_MANAGER)
    prefers_later_versions: bool = knob("preferLaterVersions", default=False)
    skips_names_without_port: bool = False


@dataclass(frozen=True, slots=True)
class ExtensiblePlacementResult(Generic[M]):
    """The node for a bundle, with the evidence.

    Attributes:
        node_id: the node; None if no node may take the bundle, or if the request only reads.
        steps: each filter's answer, in order.
        pick: the choice of the strategy; None if there was no candidate.
        memory: the memory of the strategy.
    """

    node_id: str | None
    steps: tuple[Filtering, ...]
    pick: Pick | None
    memory: M


@dataclass(frozen=True, slots=True)
class ExtensiblePlacement(Generic[M]):
    """The selection with its strategy, its settings, and filters of users, which come last."""

    strategy: PlacementStrategy[ExtensibleContext, M]
    settings: ExtensiblePlacementSettings = field(default_factory=ExtensiblePlacementSettings)
    own_filters: tuple[NodeFilter[ExtensibleContext], ...] = ()

    def place(
        self,
        bundle: BundleToPlace,
        context: ExtensibleContext,
        memory: M,
        draw: float,
        *,
        excluded: AbstractSet[str] = frozenset(),
        read_only: bool = False,
    ) -> ExtensiblePlacementResult[M]:
        """The node for a bundle.

        Args:
            bundle: the bundle.
            context: the node's knowledge.
            memory: the memory of the strategy.
            draw: a random number, at least 0 and below 1.
            excluded: nodes that must not take the bundle.
            read_only: the request asks for an owner only and must not choose one.
        """
        if read_only:
            return ExtensiblePlacementResult(None, (), None, memory)
        candidates = tuple(node_id for node_id in context.registered if node_id not in excluded)
        steps = self.filtered(bundle, candidates, context)
        if not steps[-1].kept:
            return ExtensiblePlacementResult(None, steps, None, memory)
        pick, memory = picked(self.strategy, bundle, steps[-1].kept, context, draw, memory)
        return ExtensiblePlacementResult(pick.node_id, steps, pick, memory)

    def filtered(
        self, bundle: BundleToPlace, candidates: Sequence[str], context: ExtensibleContext
    ) -> tuple[Filtering, ...]:
        """Each filter's answer, in order; each is asked about the nodes that the one before it left."""
        steps: list[Filtering] = []
        for each in self._filters():
            steps.append(each.keep(bundle, steps[-1].kept if steps else candidates, context))
        return tuple(steps)

    def _filters(self) -> tuple[NodeFilter[ExtensibleContext], ...]:
        settings = self.settings
        return (
            ManagerFilter(settings.manager),
            TopicCountFilter(settings.max_topics, drops_at_limit=True, keeps_all_if_none=False),
            *((VersionFilter(),) if settings.prefers_later_versions else ()),
            AntiAffinityFilter(settings.uses_domains),
            IsolationFilter(settings.skips_names_without_port),
            *self.own_filters,
        )

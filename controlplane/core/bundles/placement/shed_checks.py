"""Whether a bundle that a shedder chose leaves its node, and for which one (Pulsar's doLoadShedding)."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from controlplane.core.bundles.placement.anti_affinity import allows_unload, anti_affinity_counts
from controlplane.core.bundles.placement.context import ModularContext
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.modular import ModularPlacement, Placement, PlacementMemory

M = TypeVar("M")


class UnloadRefusal(Enum):
    """Why a bundle stays."""

    EXCLUDED_NAMESPACE = "excluded-namespace"
    """Its namespace is excluded from shedding."""
    NO_OTHER_NODE = "no-other-node"
    """The isolation policies allow no other node."""
    ANTI_AFFINITY = "anti-affinity"
    """Every allowed node serves equally much of its anti-affinity group."""
    NO_DESTINATION = "no-destination"
    """The placement finds no node."""
    SAME_NODE = "same-node"
    """The placement would choose the node that has it."""


@dataclass(frozen=True, slots=True)
class ShedCheckSettings:
    """Which checks are made.

    Attributes:
        asks_policies: whether the isolation policies have to allow another node. Off in Pulsar 2.
        names_destination: whether the placement chooses the destination before the bundle leaves. Off in Pulsar 2: then
            the next request places the bundle, perhaps on the same node again.
    """

    asks_policies: bool = True
    names_destination: bool = True


@dataclass(frozen=True, slots=True)
class UnloadCheck(Generic[M]):
    """Whether a bundle leaves.

    Attributes:
        refusal: why it stays; None if it leaves.
        destination: the node that should take it; None if it stays, or if no destination is named.
        placement: the selection of the destination, if there was one.
        memory: the memory of the placement afterwards; a selection counts even if the bundle stays.
    """

    refusal: UnloadRefusal | None
    destination: str | None
    placement: Placement[M] | None
    memory: PlacementMemory[M]


@dataclass(frozen=True, slots=True)
class UnloadChecks(Generic[M]):
    """The checks of bundles that a shedder chose: the placement, and which checks are made."""

    rule: ModularPlacement[M]
    settings: ShedCheckSettings = field(default_factory=ShedCheckSettings)

    def check(
        self,
        bundle: BundleToPlace,
        current: str,
        context: ModularContext,
        memory: PlacementMemory[M],
        draws: tuple[float, float],
    ) -> UnloadCheck[M]:
        """Whether a bundle leaves its node.

        The isolation policies have to allow another node (Pulsar's shouldNamespacePoliciesUnload), and a move has to be
        able to spread the bundle's anti-affinity group better. The selection of the destination preallocates nothing.

        Args:
            bundle: the bundle that a shedder chose.
            current: its node.
            context: the leader's knowledge.
            memory: the memory of the placement.
            draws: as in :meth:`ModularPlacement.place`.
        """
        refusal = self._refusal(bundle, current, context)
        if refusal is not None or not self.settings.names_destination:
            return UnloadCheck(refusal, None, None, memory)
        placement = self.rule.place(bundle, context, memory, draws)
        if placement.node_id is None:
            refusal = UnloadRefusal.NO_DESTINATION
        elif placement.node_id == current:
            refusal = UnloadRefusal.SAME_NODE
        destination = None if refusal is not None else placement.node_id
        return UnloadCheck(refusal, destination, placement, placement.memory)

    def _refusal(self, bundle: BundleToPlace, current: str, context: ModularContext) -> UnloadRefusal | None:
        if bundle.namespace in self.rule.settings.excluded_namespaces:
            return UnloadRefusal.EXCLUDED_NAMESPACE
        allowed = self.rule.allowed(bundle, context).kept
        if self.settings.asks_policies and all(node_id == current for node_id in allowed):
            return UnloadRefusal.NO_OTHER_NODE
        if not allows_unload(anti_affinity_counts(bundle.namespace, context), current, allowed):
            return UnloadRefusal.ANTI_AFFINITY
        return None

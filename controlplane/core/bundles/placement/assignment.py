"""The answer to a request for a bundle's node (Pulsar's getLeastLoaded and selectBrokerForAssignment)."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

from controlplane.core.bundles.placement.context import ModularContext
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.modular import ModularPlacement, Placement, PlacementMemory

M = TypeVar("M")


class Source(Enum):
    """Why a bundle is assigned to a node."""

    AFFINITY = "affinity"
    """An operator named the node when the bundle was unloaded."""
    PREALLOCATED = "preallocated"
    """It was chosen before, and no report has confirmed it yet."""
    PLACED = "placed"
    """It was chosen now."""


@dataclass(frozen=True, slots=True)
class Assignment(Generic[M]):
    """The answer to a request for a bundle's node.

    Attributes:
        node_id: the node; None if no node may take the bundle.
        source: why this node.
        placement: the selection, if there was one.
        memory: the memory after the request.
        context: the knowledge after the request; a node that was chosen now has the bundle preallocated. Its loads are
            those with which the next fold begins.
    """

    node_id: str | None
    source: Source
    placement: Placement[M] | None
    memory: PlacementMemory[M]
    context: ModularContext


def assign(
    rule: ModularPlacement[M],
    bundle: BundleToPlace,
    context: ModularContext,
    memory: PlacementMemory[M],
    draws: tuple[float, float],
) -> Assignment[M]:
    """The node of a bundle without an owner.

    Args:
        rule: the selection.
        bundle: the bundle.
        context: the leader's knowledge.
        memory: the memory after the previous request.
        draws: as in :meth:`ModularPlacement.place`.
    """
    named = memory.affinities.node_of(bundle.bundle_id)
    if named is not None:
        memory = replace(memory, affinities=memory.affinities.without(bundle.bundle_id))
        return Assignment(named, Source.AFFINITY, None, memory, context)
    former = context.loads.node_of_preallocated.get(bundle.bundle_id)
    if former is not None and rule.follows_preallocation(former, context):
        return Assignment(former, Source.PREALLOCATED, None, memory, context)
    placement = rule.place(bundle, context, memory, draws)
    if placement.node_id is not None:
        context = context.with_preallocated(placement.node_id, bundle)
    return Assignment(placement.node_id, Source.PLACED, placement, placement.memory, context)

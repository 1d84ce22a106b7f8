"""Namespaces and bundles: ranges of a namespace's 32-bit hash space, each with one owner (Pulsar's bundles)."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH, HashRange, equal_boundaries
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.values.canonical import later, union_member
from controlplane.core.values.identifiers import Epoch, NamespaceName, NodeId

HASH_SPACE = 1 << 32
"""Number of hashes, 0 to 2^32 - 1, that the bundles of a namespace divide."""
PULSAR_BOUNDS_LEVEL: Final = 2
"""The feature level from which a new namespace is divided at Pulsar's bounds."""
_NO_EPOCH: Final = Epoch(0)


@union_member
@dataclass(frozen=True, slots=True)
class Namespace:
    """A named hash space.

    Attributes:
        name: its name.
        bundle_count: number of bundles at its creation.
        is_ending: whether it is being deleted: its bundles are released, and it ends with the last of them.
    """

    name: NamespaceName
    bundle_count: int
    is_ending: bool = field(default=False, metadata=later(since_level=HANDOFFS_FROM_LEVEL))


@union_member
@dataclass(frozen=True, slots=True)
class Bundle:
    """A hash range of a namespace.

    Attributes:
        namespace: its namespace.
        lower: lower bound, inclusive.
        upper: upper bound, exclusive; 2^32 - 1 for the last bundle, which holds it. At feature level 1 it is 2^32.
        owner: the node that serves it or, while it is *Releasing*, has to release it; None while it is without one.
        state: the state of its ownership; None below feature level 3, see :attr:`ownership_state`.
        next_owner: the node that it goes to, while it is *Releasing* or *Assigning*; None for none.
        former_owner: the node that released it, or that it was taken from; None for none (Pulsar's source).
        owner_epoch: the epoch in which ``owner`` became its owner: the fencing token of the bundle.
        state_epoch: the epoch in which this row was written. Ticks that name it date the state in every partition.
        version: number of this row, one more each time (Pulsar's versionId).
        is_forced: whether the leader repaired the bundle, so that this row need not follow from the one before.
        children: while it is *Splitting*, the names of the ranges that take its place; empty if its owner is asked.
        split_algorithm: while it is *Splitting*, the algorithm by which its owner finds the bounds; empty for none.
        parent: the name of the range that was split into this one; empty for a bundle of the namespace's creation.
    """

    namespace: NamespaceName
    lower: int
    upper: int
    owner: NodeId | None
    state: OwnershipState | None = field(default=None, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    next_owner: NodeId | None = field(default=None, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    former_owner: NodeId | None = field(default=None, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    owner_epoch: Epoch = field(default=_NO_EPOCH, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    state_epoch: Epoch = field(default=_NO_EPOCH, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    version: int = field(default=0, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    is_forced: bool = field(default=False, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    children: tuple[str, ...] = field(default=(), metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    split_algorithm: str = field(default="", metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    parent: str = field(default="", metadata=later(since_level=HANDOFFS_FROM_LEVEL))

    @property
    def ownership_state(self) -> OwnershipState:
        """The state of its ownership. A row of an earlier feature level is *Owned* or, without an owner, *Free*."""
        if self.state is not None:
            return self.state
        return OwnershipState.FREE if self.owner is None else OwnershipState.OWNED

    @property
    def serving_node(self) -> NodeId | None:
        """The node that may serve it: its owner, unless that has to release it; None for none."""
        return None if self.ownership_state is OwnershipState.RELEASING else self.owner

    @property
    def counted_for(self) -> NodeId | None:
        """The node that owns it or is to own it, for which a choice of a node counts it; None for none."""
        return self.next_owner or self.serving_node

    @property
    def hash_range(self) -> HashRange:
        """Its bounds."""
        return HashRange(self.lower, self.upper)

    @property
    def bundle_id(self) -> str:
        """The id: namespace and bounds, for example ``kv/0x00000000_0x40000000``."""
        return f"{self.namespace}/{self.hash_range.name}"

    @property
    def end(self) -> int:
        """The number after the last hash that it holds."""
        return HASH_SPACE if self.upper == LAST_HASH else self.upper


def equal_bundles(namespace: NamespaceName, count: int) -> tuple[Bundle, ...]:
    """The hash space divided into ``count`` bundles without owners, ascending, at the bounds that Pulsar gives them.

    Raises:
        ConfigurationError: :func:`controlplane.core.bundles.ranges.equal_boundaries` refuses the count.
    """
    return tuple(Bundle(namespace, *each, None) for each in equal_boundaries(count).ranges)


def bundles_at_level_1(namespace: NamespaceName, count: int) -> tuple[Bundle, ...]:
    """The hash space divided at the bounds of feature level 1: widths differ by 1 at most, the last bound is 2^32.

    To a release of that level a namespace whose last bound is 2^32 - 1 has no bundle for that hash. ``count`` is at
    least 1.
    """
    bounds = (HASH_SPACE * index // count for index in range(count + 1))
    return tuple(Bundle(namespace, lower, upper, None) for lower, upper in pairwise(bounds))


def assign_orphans(bundles: tuple[Bundle, ...], nodes: tuple[NodeId, ...]) -> tuple[Bundle, ...]:
    """The bundles with a changed owner: those whose owner is not among ``nodes``, with a new owner.

    In the order of namespace and lower bound, each goes to the node with the fewest bundles, ties to the first name.
    Bundles whose owner is among ``nodes`` never move. Without nodes the owner becomes None.
    """
    alive = set(nodes)
    owned = dict.fromkeys(sorted(nodes), 0)
    for bundle in bundles:
        if bundle.owner in alive and bundle.owner is not None:
            owned[bundle.owner] += 1
    changed = []
    for bundle in sorted(bundles, key=lambda each: (each.namespace, each.lower)):
        if bundle.owner is not None and bundle.owner in alive:
            continue
        owner = min(owned, key=lambda node_id: (owned[node_id], node_id), default=None)
        if owner is not None:
            owned[owner] += 1
        if owner != bundle.owner:
            changed.append(Bundle(bundle.namespace, bundle.lower, bundle.upper, owner))
    return tuple(changed)

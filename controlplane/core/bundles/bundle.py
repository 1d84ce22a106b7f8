"""Namespaces and bundles: ranges of a namespace's 32-bit hash space, each with one owner (Pulsar's bundles)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from controlplane.core.bundles.ranges import LAST_HASH, HashRange, equal_boundaries
from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import NamespaceName, NodeId

HASH_SPACE = 1 << 32
"""Number of hashes, 0 to 2^32 - 1, that the bundles of a namespace divide."""
PULSAR_BOUNDS_LEVEL: Final = 2
"""The feature level from which a new namespace is divided at Pulsar's bounds."""


@union_member
@dataclass(frozen=True, slots=True)
class Namespace:
    """A named hash space. ``bundle_count`` is the number of bundles at its creation."""

    name: NamespaceName
    bundle_count: int


@union_member
@dataclass(frozen=True, slots=True)
class Bundle:
    """A hash range of a namespace.

    Attributes:
        namespace: its namespace.
        lower: lower bound, inclusive.
        upper: upper bound, exclusive; 2^32 - 1 for the last bundle, which holds it. At feature level 1 it is 2^32.
        owner: the node that serves it; None while no node can own it.
    """

    namespace: NamespaceName
    lower: int
    upper: int
    owner: NodeId | None

    @property
    def bundle_id(self) -> str:
        """The id: namespace and bounds, for example ``kv/0x00000000_0x40000000``."""
        return f"{self.namespace}/{HashRange(self.lower, self.upper).name}"

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

"""The busiest bundles of a node, or of all nodes (Pulsar's TopKBundles)."""

from collections.abc import Callable, Iterable, Mapping, MutableSequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Final

from controlplane.core.bundles.load.load_order import Compare, NearTies, by_stats
from controlplane.core.bundles.names import SYSTEM_NAMESPACE, namespace_of, serves_health_checks
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.settings.allowed import ONE_OR_MORE
from controlplane.core.bundles.settings.knobs import knob

_PASSES: Final = 24
_FREE_COMPARISONS: Final = 20_000
"""A partition compares each element about three times; up to 200 elements it may take any number of comparisons."""


@dataclass(frozen=True, slots=True)
class TopBundlesSettings:
    """Settings of the report of a node's busiest bundles. The defaults are Pulsar's.

    Attributes:
        max_bundles: greatest number of bundles in a node's report; 0 or less means all. The modular leader stores so
            many histories for each node.
        includes_bundles_with_policies: report bundles of namespaces with isolation policies or anti-affinity groups.
        excluded_namespaces: namespaces whose bundles are not reported, and so are never shed.
        includes_idle_bundles: report bundles without throughput, as versions before 4.2 do.
        near_ties: how nearly equal loads compare.
    """

    max_bundles: int = knob("loadBalancerMaxNumberOfBundlesInBundleLoadReport", 10, ONE_OR_MORE)
    includes_bundles_with_policies: bool = knob("loadBalancerSheddingBundlesWithPoliciesEnabled", default=False)
    excluded_namespaces: AbstractSet[str] = knob("loadBalancerSheddingExcludedNamespaces", frozenset())
    includes_idle_bundles: bool = False
    near_ties: NearTies = NearTies.GRID


def top_bundles(
    stats: Iterable[BundleLoad],
    settings: TopBundlesSettings,
    *,
    is_isolated: Callable[[str], bool],
    groups: Mapping[str, str],
) -> tuple[BundleLoad, ...]:
    """The busiest bundles of a node that may be shed, the least loaded of them first.

    That order makes the transfer shedder try small bundles first.

    Args:
        stats: the latest sample of each bundle. Ties depend on this order.
        settings: the settings of the report.
        is_isolated: whether an isolation policy applies to a namespace.
        groups: the anti-affinity group of each namespace that has one; a blank name is no group.
    """
    allowed: dict[str, bool] = {}

    def is_allowed(namespace: str) -> bool:
        if serves_health_checks(namespace) or namespace in {SYSTEM_NAMESPACE, *settings.excluded_namespaces}:
            return False
        has_policies = bool(groups.get(namespace, "").strip()) or is_isolated(namespace)
        return settings.includes_bundles_with_policies or not has_policies

    chosen: list[BundleLoad] = []
    for each in stats:
        namespace = namespace_of(each.bundle_id)
        if namespace not in allowed:
            allowed[namespace] = is_allowed(namespace)
        idle = each.throughput_in_bytes_per_s + each.throughput_out_bytes_per_s == 0
        if allowed[namespace] and (settings.includes_idle_bundles or not idle):
            chosen.append(each)
    count = len(chosen) if settings.max_bundles <= 0 else min(settings.max_bundles, len(chosen))
    order = partition_sort(len(chosen), count, by_stats(chosen, settings.near_ties))
    return tuple(chosen[position] for position in reversed(order))


def partition_sort(length: int, count: int, compare: Compare) -> list[int]:
    """The positions of the ``count`` greatest of ``length`` elements, the greatest first.

    Which of equal elements are among them, and in which order, follows from Pulsar's algorithm: a three-way partition
    around the last element until the boundary of the greatest ``count`` lies between elements, and a stable sort of
    those before it. Elements equal to the last chosen one keep the order that the partition gave them. The partition is
    slow if the elements come sorted; after a bound that other orders never reach, elements that are equal keep their
    order instead.

    Args:
        length: number of elements.
        count: how many are wanted; 0 or less gives none, and more than ``length`` gives all.
        compare: the order of two elements, given by position.
    """
    count = min(count, length)
    if count <= 0:
        return []
    positions = list(range(length))
    start, end = 0, length - 1
    passed = 0
    while start < end:
        passed += end - start + 1
        if passed > _PASSES * length + _FREE_COMPARISONS:
            return _sorted(range(length), compare)[:count]
        equal, greater_end = _partition(positions, start, end, compare)
        if equal <= count - 1 < greater_end:
            end = equal
            break
        if count - 1 < equal:
            end = equal - 1
        else:
            start = greater_end
    # Elements in [0, end) are greater than the rest or equal to the element at `end`.
    return [*_sorted(positions[:end], compare), *positions[end:count]]


def _sorted(positions: Iterable[int], compare: Compare) -> list[int]:
    """The greatest first; equal ones keep their order."""

    def falling(first: int, second: int) -> int:
        return compare(second, first)

    return sorted(positions, key=cmp_to_key(falling))


def _partition(positions: MutableSequence[int], start: int, end: int, compare: Compare) -> tuple[int, int]:
    """Order a part into greater, equal and smaller than its last element; the start of the latter two."""
    pivot = positions[end]
    low, middle, high = start, start, end
    while middle <= high:
        order = compare(pivot, positions[middle])
        if order < 0:
            positions[low], positions[middle] = positions[middle], positions[low]
            low += 1
            middle += 1
        elif order > 0:
            positions[middle], positions[high] = positions[high], positions[middle]
            high -= 1
        else:
            middle += 1
    return low, middle

"""Anti-affinity: the namespaces of a group are spread over nodes and over failure domains.

The modular load manager counts the namespaces of the group on a node, the extensible one the bundles that the node
owns; the context decides which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from controlplane.core.bundles.placement.context import NodeFacts
from controlplane.core.bundles.placement.contract import BundleToPlace, Filtering, keep_least
from controlplane.core.bundles.settings.knobs import knob

DEFAULT_DOMAIN: Final = "default"
"""The failure domain of a node that has none."""


def group_of(namespace: str, groups: Mapping[str, str]) -> frozenset[str] | None:
    """The namespaces of a namespace's group, itself included; None if it has no group.

    Names of groups are compared without regard to case.
    """
    name = groups.get(namespace, "")
    if not name.strip():
        return None
    folded = _without_case(name)
    return frozenset(each for each, group in groups.items() if group == name or _without_case(group) == folded)


@lru_cache(maxsize=4_096)
def _without_case(name: str) -> str:
    # As Java's equalsIgnoreCase: character by character, and a character without a single counterpart stays.
    upper = (character.upper() if len(character.upper()) == 1 else character for character in name)
    return "".join(character.lower() if len(character.lower()) == 1 else character for character in upper)


def anti_affinity_counts(namespace: str, context: NodeFacts) -> Mapping[str, int] | None:
    """By node, how much of a namespace's group it serves; None if the namespace has no group."""
    group = group_of(namespace, context.rules.groups)
    return None if group is None else context.group_counts(group)


@dataclass(frozen=True, slots=True)
class AntiAffinityFilter:
    """Keep the nodes that serve least of the bundle's group.

    Attributes:
        uses_domains: first keep the failure domains whose candidates together serve least; nodes without a domain form
            one. No node has a domain: no domain is dropped.
    """

    uses_domains: bool = knob("failureDomainsEnabled", default=False)
    name: str = "anti-affinity"

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: NodeFacts) -> Filtering:
        """The nodes with the least count; all if the namespace has no group."""
        counts = anti_affinity_counts(bundle.namespace, context)
        if counts is None:
            return Filtering(self.name, tuple(candidates))
        domains = context.rules.domains
        if not self.uses_domains or not domains:
            return keep_least(self.name, candidates, counts)
        by_domain: dict[str, int] = {}
        for node_id in candidates:
            domain = domains.get(node_id, DEFAULT_DOMAIN)
            by_domain[domain] = by_domain.get(domain, 0) + counts.get(node_id, 0)
        sums = {node_id: by_domain[domains.get(node_id, DEFAULT_DOMAIN)] for node_id in candidates}
        within = keep_least(self.name, candidates, sums)
        least = keep_least(self.name, within.kept, counts)
        return Filtering(self.name, least.kept, (*within.dropped, *least.dropped))


def allows_unload(counts: Mapping[str, int] | None, current: str, candidates: Sequence[str]) -> bool:
    """Whether a bundle may leave its node (Pulsar's shouldAntiAffinityNamespaceUnload).

    Not if every candidate serves equally much of the group, at least something, and the current node, which counts as 0
    if it is no candidate, not more: then a move spreads nothing better.

    Args:
        counts: by node, how much of the group it serves; None if the namespace has no group.
        current: the bundle's node.
        candidates: the nodes that the policies allow, the current one included.
    """
    if not counts:
        return True
    served = [counts.get(node_id, 0) for node_id in candidates]
    least = min(served, default=None)
    if least is None:
        # Without a candidate nothing is the least, all of none tie, and Pulsar does not unload.
        return False
    current_count = counts.get(current, 0) if current in candidates else 0
    return least == 0 or current_count > least or any(count != least for count in served)

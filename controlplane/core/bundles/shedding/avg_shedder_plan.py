"""What the pairing of nodes by score remembers, and how its remembered targets place bundles (Pulsar's AvgShedder).

A bundle that is shed has a planned node. The placement asks for it when the bundle looks for its new owner, so the same
rule has to have both roles.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.values.ordered_map import OrderedMap


class PlannedNode(NamedTuple):
    """The node that should take a bundle.

    Attributes:
        node_id: the node.
        bundle_id: the bundle for which the entry was first made.
        averages: in a plan by averages, those of that bundle then; None in a plan by name.
    """

    node_id: str
    bundle_id: str
    averages: BundleHistory | None = None


Plan: TypeAlias = Mapping[str, PlannedNode]
"""Planned nodes by the bundle's id, or by a text of its averages where bundles with equal ones share an entry."""


@dataclass(frozen=True, slots=True)
class AvgShedderMemory:
    """What the pairing remembers.

    Attributes:
        high_hits: by node, in how many cycles in a row its score differed by the high threshold.
        low_hits: the same with the low threshold.
        plan: the planned nodes.
    """

    high_hits: Mapping[str, int] = field(default_factory=dict)
    low_hits: Mapping[str, int] = field(default_factory=dict)
    plan: Plan = field(default_factory=dict)

    def without_plan_for(self, bundle_id: str) -> "AvgShedderMemory":
        """The memory after an attempt to unload a bundle with a plan by its name has ended."""
        plan = OrderedMap.of(self.plan)
        return replace(self, plan=plan.drop([bundle_id])) if bundle_id in plan else self


def averages_key(history: BundleHistory) -> str:
    """The key of averages and topics, as a text: equal ones have equal keys."""
    averages = history.averages
    terms = ((each.max_samples, each.sample_count, *each.load) for each in (averages.short_term, averages.long_term))
    # The sum with 0 makes -0.0 and 0.0, which are equal, the same text.
    return " ".join(repr(number + 0.0) for number in (*itertools.chain(*terms), history.topic_count))


def remember(plan: Plan, bundle_id: str, averages: BundleHistory | None, node_id: str) -> Plan:
    """The plan with an entry. The bundle for which an existing one was first made stays.

    Args:
        plan: the plan.
        bundle_id: the bundle.
        averages: the bundle's averages in a plan by averages, else None.
        node_id: the node that should take it.
    """
    key = plan_key(bundle_id, averages)
    former = plan.get(key)
    entry = PlannedNode(node_id, bundle_id, averages) if former is None else former._replace(node_id=node_id)
    return OrderedMap.of(plan).put([(key, entry)])


def plan_key(bundle_id: str, averages: BundleHistory | None) -> str:
    """The key of a bundle's entry."""
    return bundle_id if averages is None else averages_key(averages)


def planned_node(
    plan: Plan, bundle_id: str, averages: BundleHistory | None, bundles: Mapping[str, BundleHistory]
) -> PlannedNode | None:
    """The entry of a bundle, if there is one that can be found.

    An entry under averages is lost as soon as the bundle for which it was first made has others: Pulsar's map has that
    bundle's changeable averages as its key, so that a new sample hides the entry.
    """
    planned = plan.get(plan_key(bundle_id, averages))
    return planned if planned is not None and _can_be_found(planned, bundles) else None


def findable(plan: Plan, bundles: Mapping[str, BundleHistory]) -> Plan:
    """The entries that can still be found, without those of bundles that are no longer known."""
    lost = [
        key for key, planned in plan.items() if planned.bundle_id not in bundles or not _can_be_found(planned, bundles)
    ]
    return OrderedMap.of(plan).drop(lost) if lost else plan


def _can_be_found(planned: PlannedNode, bundles: Mapping[str, BundleHistory]) -> bool:
    return planned.averages is None or bundles.get(planned.bundle_id, planned.averages) == planned.averages

"""What the pairing of nodes by score remembers, and how its remembered targets place bundles (Pulsar's AvgShedder).

A bundle that is shed has a planned node. The placement asks for it when the bundle looks for its new owner, so the same
rule has to have both roles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.values.ordered_map import OrderedMap

PlanKey: TypeAlias = str | BundleHistory
"""A bundle's id, or its averages and topics where bundles with equal ones share an entry."""


class PlannedNode(NamedTuple):
    """The node that should take a bundle, and the bundle for which the entry was first made."""

    node_id: str
    bundle_id: str


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
    plan: Mapping[PlanKey, PlannedNode] = field(default_factory=dict)

    def without_plan_for(self, bundle_id: str) -> "AvgShedderMemory":
        """The memory after an attempt to unload a bundle with a plan by its name has ended."""
        plan = OrderedMap.of(self.plan)
        return replace(self, plan=plan.drop([bundle_id])) if bundle_id in plan else self


def remember(plan: dict[PlanKey, PlannedNode], bundle_id: str, key: PlanKey, node_id: str) -> None:
    """Write an entry. The bundle for which an existing one was first made stays."""
    former = plan.get(key)
    plan[key] = PlannedNode(node_id, bundle_id if former is None else former.bundle_id)


def planned_node(
    plan: Mapping[PlanKey, PlannedNode], key: PlanKey, bundles: Mapping[str, BundleHistory]
) -> PlannedNode | None:
    """The entry of a key, if there is one that can be found.

    An entry under averages is lost as soon as the bundle for which it was first made has others: Pulsar's map has that
    bundle's changeable averages as its key, so that a new sample hides the entry.
    """
    planned = plan.get(key)
    if planned is None or isinstance(key, str) or bundles.get(planned.bundle_id, key) == key:
        return planned
    return None


def findable(plan: Mapping[PlanKey, PlannedNode], bundles: Mapping[str, BundleHistory]) -> dict[PlanKey, PlannedNode]:
    """The entries that can still be found, without those of bundles that are no longer known."""
    return {
        key: planned
        for key, planned in plan.items()
        if planned.bundle_id in bundles and planned_node(plan, key, bundles) is not None
    }

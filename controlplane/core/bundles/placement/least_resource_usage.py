"""The strategies that prefer nodes whose usage is well below the mean (Pulsar's LeastResourceUsageWithWeight, twice).

The modular one smooths usages itself, one step at each selection. The extensible one takes the averages that nodes
store with their loads.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controlplane.core.bundles.load.plausible import is_plausible_amount
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import LoadView, NodeView
from controlplane.core.bundles.placement.context import ExtensibleContext
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError, Selection
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, PERCENT, SHARE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable


@dataclass(frozen=True, slots=True)
class LeastResourceUsageSettings:
    """Settings of both strategies.

    Attributes:
        difference_percent: a node is good if its smoothed usage is below the candidates' mean by at least so many
            percentage points.
        history_weight: weight of the former average when a usage is added, from 0 to 1; modular only.
        weights: weights of the resources; modular only.
        checks_loads: a candidate without a load, or whose usage is negative, infinite or not a number, counts neither
            in the mean nor among the best unless no other exists. Off is Pulsar's behaviour: the modular strategy fails
            on a missing report, the extensible one leaves it out of the mean, and other figures count as they are.
    """

    difference_percent: float = knob(
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage", 10, PERCENT, accepted=NOT_NEGATIVE
    )
    history_weight: float = knob("loadBalancerHistoryResourcePercentage", 0.9, SHARE, accepted=SHARE)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    checks_loads: bool = True

    def __post_init__(self) -> None:
        """Refuse a weight outside of its range and a difference that is not a number."""
        refuse_unusable(self)


SmoothedUsages = Mapping[str, float]
"""By node, the average of its usage; 1.0 means 100 percent."""


@dataclass(frozen=True, slots=True)
class LeastResourceUsage:
    """Choose the nodes whose usage is well below the candidates' mean; without such, every candidate (modular).

    A node's average starts again when the node has no bundles or no messages, because it has restarted or is idle.
    """

    settings: LeastResourceUsageSettings = field(default_factory=LeastResourceUsageSettings)
    name: str = "LeastResourceUsageWithWeight"
    first_memory: SmoothedUsages = field(default_factory=dict)

    def select(
        self,
        bundle: BundleToPlace,  # noqa: ARG002 - every bundle is placed alike
        candidates: Sequence[str],
        view: LoadView,
        memory: SmoothedUsages,
    ) -> Selection[SmoothedUsages]:
        """The best candidates; the averages of all candidates advance by one step.

        Raises:
            MissingLoadError: a candidate has no report, and loads are not checked.
        """
        smoothed = {}
        for node_id in candidates:
            node = view.nodes.get(node_id)
            if node is not None:
                usage = self._smooth(node, memory.get(node_id))
                if not self.settings.checks_loads or is_plausible_amount(usage):
                    smoothed[node_id] = usage
            elif not self.settings.checks_loads:
                raise MissingLoadError(node_id)
        best, limit = _well_below_mean(candidates, smoothed, self.settings)
        return Selection(best, {**memory, **smoothed}, smoothed, limit)

    def after_pick(self, bundle: BundleToPlace, node_id: str, view: LoadView, memory: SmoothedUsages) -> SmoothedUsages:  # noqa: ARG002
        """The memory as it is: a pick changes no average."""
        return memory

    def retain(self, memory: SmoothedUsages, active: AbstractSet[str]) -> SmoothedUsages:
        """The averages of the active nodes."""
        return {node_id: usage for node_id, usage in memory.items() if node_id in active}

    def _smooth(self, node: NodeView, former: float | None) -> float:
        load, weight = node.load, self.settings.history_weight
        usage = weighted_usage(load, self.settings.weights)
        silent = load.traffic.message_rate_in_per_s == 0 and load.traffic.message_rate_out_per_s == 0
        if former is None or not load.bundles or silent:
            return usage
        return former * weight + (1 - weight) * usage


@dataclass(frozen=True, slots=True)
class LeastStoredUsage:
    """Choose the nodes whose stored average is well below the mean of those that have one (extensible).

    A node without a stored load counts in no mean. If no candidate is good, every candidate is among the best, also
    those without a load.
    """

    settings: LeastResourceUsageSettings = field(default_factory=LeastResourceUsageSettings)
    name: str = "LeastResourceUsageWithWeight"
    first_memory: None = None

    def select(
        self,
        bundle: BundleToPlace,  # noqa: ARG002 - every bundle is placed alike
        candidates: Sequence[str],
        view: ExtensibleContext,
        memory: None,
    ) -> Selection[None]:
        """The best candidates."""
        stored = {
            node_id: view.loads[node_id].smoothed_usage
            for node_id in candidates
            if node_id in view.loads
            and (not self.settings.checks_loads or is_plausible_amount(view.loads[node_id].smoothed_usage))
        }
        best, limit = _well_below_mean(candidates, stored, self.settings)
        return Selection(best, memory, stored, limit)

    def after_pick(self, bundle: BundleToPlace, node_id: str, view: ExtensibleContext, memory: None) -> None:  # noqa: ARG002
        """Nothing: the strategy has no memory."""
        return memory

    def retain(self, memory: None, active: AbstractSet[str]) -> None:  # noqa: ARG002
        """Nothing: the strategy has no memory."""
        return memory


def _well_below_mean(
    candidates: Iterable[str], usages: SmoothedUsages, settings: LeastResourceUsageSettings
) -> tuple[tuple[str, ...], float | None]:
    total = 0.0
    for usage in usages.values():  # not sum(): newer Pythons compensate rounding there
        total += usage
    mean = total / len(usages) if usages else 0.0
    difference = settings.difference_percent / 100.0
    best = tuple(node_id for node_id, usage in usages.items() if usage + difference <= mean)
    if best:
        return best, mean - difference
    return (tuple(usages) if settings.checks_loads and usages else tuple(candidates)), None

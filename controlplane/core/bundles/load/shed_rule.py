"""The choice of bundles that overloaded nodes should shed (Pulsar's ThresholdShedder).

Each run smooths the usage of each node. A node whose usage exceeds the mean of all nodes by the threshold sheds its
busiest bundles, until their throughput is its excess share of the node's throughput.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB, ResourceWeights
from controlplane.errors import ConfigurationError

RULE_NAME: Final = "pulsar-threshold-shedder"
_MARGIN: Final = 0.05
"""Share of the throughput to shed beyond the excess, so that the node does not end at the threshold again."""
_LOWER_BOUNDARY_FACTOR: Final = 0.5
_MIN_BUNDLES: Final = 2
"""A node with one bundle sheds nothing, because the load would only move to another node."""


@dataclass(frozen=True, slots=True)
class ShedSettings:
    """Settings of the rule. The defaults are Pulsar's.

    Attributes:
        threshold_percent: loadBalancerBrokerThresholdShedderPercentage: greatest distance of a node's usage above the
            mean, in percentage points.
        history_weight: loadBalancerHistoryResourcePercentage: weight of the former smoothed usage, 0 to 1.
        min_throughput_mib_per_s: loadBalancerBundleUnloadMinThroughputThreshold: a node that should shed less than this
            sheds nothing.
        lower_boundary_enabled: lowerBoundarySheddingEnabled: if no node sheds by the threshold, but the usage of one is
            below the mean by more than the threshold, the busiest node sheds.
        weights: weights of the resources.
    """

    threshold_percent: float = 10
    history_weight: float = 0.9
    min_throughput_mib_per_s: float = 10.0
    lower_boundary_enabled: bool = False
    weights: ResourceWeights = field(default_factory=ResourceWeights)

    def __post_init__(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigurationError: a value is negative, or ``history_weight`` is greater than 1.
        """
        if self.threshold_percent < 0 or self.min_throughput_mib_per_s < 0 or not 0 <= self.history_weight <= 1:
            message = f"threshold and throughput have to be 0 or greater, history_weight in [0, 1], not {self}"
            raise ConfigurationError(message)


class ShedBundle(NamedTuple):
    """A bundle and its short-term average throughput, in plus out."""

    bundle_id: str
    throughput_bytes_per_s: float


class LoadedNode(NamedTuple):
    """A node as an input of the rule.

    Attributes:
        node_id: its name.
        usage: weighted usage in the latest report; 1.0 means 100 percent.
        throughput_bytes_per_s: throughput of all bundles in the latest report, in plus out.
        bundle_count: number of bundles in the latest report, including those without averages.
        bundles: the bundles that have averages. Of bundles with equal throughput the first is chosen first.
    """

    node_id: str
    usage: float
    throughput_bytes_per_s: float
    bundle_count: int
    bundles: tuple[ShedBundle, ...]


class ShedChoice(NamedTuple):
    """A bundle to shed, with the evidence.

    Attributes:
        node_id: the node that should shed it.
        bundle: the bundle and its short-term throughput.
        smoothed_usage: smoothed usage of the node; 1.0 means 100 percent.
        mean_usage: mean of the smoothed usages of all nodes.
        target_bytes_per_s: throughput that the node should shed in total.
    """

    node_id: str
    bundle: ShedBundle
    smoothed_usage: float
    mean_usage: float
    target_bytes_per_s: float


class ShedPlan(NamedTuple):
    """The result of one run: the smoothed usages, which the next run starts from, and the bundles to shed."""

    smoothed_usages: Mapping[str, float]
    mean_usage: float
    choices: tuple[ShedChoice, ...]


def plan_shedding(
    nodes: Sequence[LoadedNode],
    former_usages: Mapping[str, float],
    recently_unloaded: AbstractSet[str],
    settings: ShedSettings,
) -> ShedPlan:
    """The result of one run of the rule.

    Args:
        nodes: every living node. Sums and choices have this order; the pipeline sorts by name.
        former_usages: the smoothed usages after the previous run; a node without one starts with its usage.
        recently_unloaded: ids of bundles that moved recently and are not chosen.
        settings: the settings of the rule.
    """
    smoothed = _smooth(nodes, former_usages, settings)
    mean = _mean(smoothed)
    if mean == 0:
        return ShedPlan(smoothed, mean, ())
    choices: list[ShedChoice] = []
    threshold = settings.threshold_percent / 100.0
    for node in nodes:
        usage = smoothed[node.node_id]
        if usage < mean + threshold:
            continue
        share = usage - mean - threshold + _MARGIN
        choices += _choose(node, share, (usage, mean), recently_unloaded, settings)
    if choices or not settings.lower_boundary_enabled:
        return ShedPlan(smoothed, mean, tuple(choices))
    # Pulsar smooths a second time before it applies the lower boundary.
    smoothed = _smooth(nodes, smoothed, settings)
    mean = _mean(smoothed)
    return ShedPlan(smoothed, mean, tuple(_below_lower_boundary(nodes, smoothed, mean, recently_unloaded, settings)))


def _smooth(nodes: Sequence[LoadedNode], former: Mapping[str, float], settings: ShedSettings) -> dict[str, float]:
    weight = settings.history_weight
    return {
        node.node_id: former[node.node_id] * weight + (1 - weight) * node.usage
        if node.node_id in former
        else node.usage
        for node in nodes
    }


def _mean(usages: Mapping[str, float]) -> float:
    total = 0.0
    for usage in usages.values():  # not sum(): newer Pythons compensate rounding there, with other results
        total += usage
    return total / len(usages) if usages else 0.0


def _below_lower_boundary(
    nodes: Sequence[LoadedNode],
    smoothed: Mapping[str, float],
    mean: float,
    recently_unloaded: AbstractSet[str],
    settings: ShedSettings,
) -> list[ShedChoice]:
    threshold = settings.threshold_percent / 100.0
    boundary = mean - threshold
    if not any(usage < boundary for usage in smoothed.values()):
        return []
    busiest: LoadedNode | None = None
    greatest = boundary
    for node in nodes:
        if node.bundle_count >= _MIN_BUNDLES and smoothed[node.node_id] > greatest:
            busiest, greatest = node, smoothed[node.node_id]
    if busiest is None:
        return []
    return _choose(busiest, threshold * _LOWER_BOUNDARY_FACTOR, (greatest, mean), recently_unloaded, settings)


def _choose(
    node: LoadedNode,
    share: float,
    usage_and_mean: tuple[float, float],
    recently_unloaded: AbstractSet[str],
    settings: ShedSettings,
) -> list[ShedChoice]:
    """The busiest bundles, at least one, until their throughput reaches ``share`` of the node's throughput."""
    target = node.throughput_bytes_per_s * share
    if target < settings.min_throughput_mib_per_s * BYTES_PER_MIB or node.bundle_count < _MIN_BUNDLES:
        return []
    free = [bundle for bundle in node.bundles if bundle.bundle_id not in recently_unloaded]
    free.sort(key=lambda bundle: bundle.throughput_bytes_per_s, reverse=True)
    chosen: list[ShedChoice] = []
    marked = 0.0
    for bundle in free:
        if chosen and marked >= target:
            break
        marked += bundle.throughput_bytes_per_s
        chosen.append(ShedChoice(node.node_id, bundle, *usage_and_mean, target))
    return chosen

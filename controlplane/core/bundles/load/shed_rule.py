"""Which bundles an overloaded node should give away (Pulsar's ThresholdShedder).

Each node's usage is smoothed, one update a tick. A node that is above the mean of all by the threshold gives away its
busiest bundles until what it gives away would bring it back into the band.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB, ResourceWeights
from controlplane.errors import ConfigurationError

RULE_NAME: Final = "pulsar-threshold-shedder"
_MARGIN: Final = 0.05
"""Give away this much more of the traffic than the excess, so that the node does not stand at the edge again."""
_LOWER_BOUNDARY_FACTOR: Final = 0.5
_MIN_BUNDLES: Final = 2
"""A node with one bundle cannot give it away and be better off."""


@dataclass(frozen=True, slots=True)
class ShedSettings:
    """When and how much to shed; the defaults are Pulsar's.

    Attributes:
        threshold_percent: loadBalancerBrokerThresholdShedderPercentage: how far above the mean usage, in percentage
            points, a node may be.
        history_weight: loadBalancerHistoryResourcePercentage: how much of the former smoothed usage stays at a tick.
        min_throughput_mib_per_s: loadBalancerBundleUnloadMinThroughputThreshold: less than this is not worth a move.
        lower_boundary_enabled: lowerBoundarySheddingEnabled: when no node is above the band but one is below it, let
            the busiest node give something away.
        weights: how much each resource counts.
    """

    threshold_percent: float = 10
    history_weight: float = 0.9
    min_throughput_mib_per_s: float = 10.0
    lower_boundary_enabled: bool = False
    weights: ResourceWeights = field(default_factory=ResourceWeights)

    def __post_init__(self) -> None:
        """Refuse values that would turn the rule upside down."""
        if self.threshold_percent < 0 or self.min_throughput_mib_per_s < 0 or not 0 <= self.history_weight <= 1:
            message = f"threshold and throughput have to be 0 or greater, history_weight in [0, 1], not {self}"
            raise ConfigurationError(message)


class ShedBundle(NamedTuple):
    """A bundle with its short-term average throughput, in plus out."""

    bundle_id: str
    throughput_bytes_per_s: float


class LoadedNode(NamedTuple):
    """A node as the rule sees it.

    Attributes:
        node_id: its name.
        usage: weighted usage of the latest report, 1.0 for 100 percent.
        throughput_bytes_per_s: of the latest report, in plus out, all bundles.
        bundle_count: bundles of the latest report, those without averages included.
        bundles: those that have averages; among equal throughputs the first is taken first.
    """

    node_id: str
    usage: float
    throughput_bytes_per_s: float
    bundle_count: int
    bundles: tuple[ShedBundle, ...]


class ShedChoice(NamedTuple):
    """A bundle to be given away, with the evidence.

    Attributes:
        node_id: who should give it away.
        bundle: which, and its short-term throughput.
        smoothed_usage: the node's, 1.0 for 100 percent.
        mean_usage: of all nodes.
        target_bytes_per_s: how much the node should give away in all.
    """

    node_id: str
    bundle: ShedBundle
    smoothed_usage: float
    mean_usage: float
    target_bytes_per_s: float


class ShedPlan(NamedTuple):
    """One tick's outcome: the smoothed usages, which the next tick starts from, and what to give away."""

    smoothed_usages: Mapping[str, float]
    mean_usage: float
    choices: tuple[ShedChoice, ...]


def plan_shedding(
    nodes: Sequence[LoadedNode],
    former_usages: Mapping[str, float],
    recently_unloaded: AbstractSet[str],
    settings: ShedSettings,
) -> ShedPlan:
    """Carry out one tick.

    Args:
        nodes: every living node; the order decides the order of the sum and of the choices, ours is by name.
        former_usages: the smoothed usages after the former tick; a node that is not in it starts with its own usage.
        recently_unloaded: bundles that moved lately and are left alone.
        settings: the thresholds.
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
    # The published rule smooths a second time before it tries the lower boundary.
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
    for usage in usages.values():  # not sum(): its compensated summation in newer Pythons gives other bits
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
    """Busiest bundles first, at least one, until their throughput reaches the share of the node's throughput."""
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

"""How a node smooths its own load before it reports it (Pulsar's BrokerLoadData of the extensible load manager).

The leader of that manager keeps no averages. Each node computes them whenever it measures, by default every five
seconds, whether or not it reports.
"""

from dataclasses import dataclass, field, replace

from controlplane.core.bundles.load.averages import NO_LOAD, MessageLoad
from controlplane.core.bundles.load.plausible import is_plausible_amount
from controlplane.core.bundles.load.resource_usage import (
    ResourceWeights,
    greatest_usage_in_64_bits,
    weighted_usage_with_memory,
)
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.settings.allowed import SHARE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable


@dataclass(frozen=True, slots=True)
class SmoothingSettings:
    """Settings of the averages.

    Attributes:
        history_weight: weight of the former average, 0 to 1. With 1 the first measurement counts forever.
        weights: weights of the resources, the heap included.
        averages_implausible_loads: average whatever is measured, as Pulsar does. Off, a throughput that no working node
            has is passed over, and the former average stays.
    """

    history_weight: float = knob("loadBalancerHistoryResourcePercentage", 0.9, SHARE, accepted=SHARE)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    averages_implausible_loads: bool = False

    def __post_init__(self) -> None:
        """Refuse a weight with which an average would leave the range of its samples."""
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class SmoothedNode:
    """The load of a node with its averages.

    Attributes:
        resources: the latest measurement.
        traffic: the sums over all bundles in the latest measurement.
        bundle_count, topic_count: totals.
        greatest_usage: the greatest usage without weights; 1.0 means 100 percent, and is assumed before a measurement.
        smoothed_usage: average of the greatest weighted usage; likewise.
        smoothed_bytes_per_s: average of the throughput, in plus out.
        updated_at_ms: time of the latest measurement, the node's clock; 0 before the first one.
        reported_at_ms: time of the latest report; 0 before the first one.
    """

    resources: Resources = field(default_factory=Resources)
    traffic: MessageLoad = NO_LOAD
    bundle_count: int = 0
    topic_count: int = 0
    greatest_usage: float = 1.0
    smoothed_usage: float = 1.0
    smoothed_bytes_per_s: float = 0.0
    updated_at_ms: int = 0
    reported_at_ms: int = 0


NO_MEASUREMENT = SmoothedNode()
"""The load before the first measurement, and after the node took or gave away a bundle (Pulsar's ``clear``).

The next measurement starts the averages anew, so that a load with the former bundles is never used.
"""


def smoothed(
    node: SmoothedNode,
    resources: Resources,
    traffic: MessageLoad,
    counts: tuple[int, int],
    settings: SmoothingSettings,
    now_ms: int,
) -> SmoothedNode:
    """The load after a measurement.

    Args:
        node: the load so far.
        resources: the measured resources.
        traffic: the measured traffic of all bundles.
        counts: the numbers of bundles and of topics.
        settings: the settings of the averages.
        now_ms: the node's clock, not 0.
    """
    usage = weighted_usage_with_memory(resources, settings.weights)
    throughput = traffic.throughput_bytes_per_s
    if not settings.averages_implausible_loads and not is_plausible_amount(throughput):
        throughput = node.smoothed_bytes_per_s
    weight = settings.history_weight
    if node.updated_at_ms != 0:
        usage = node.smoothed_usage * weight + (1 - weight) * usage
        throughput = node.smoothed_bytes_per_s * weight + (1 - weight) * throughput
    return replace(
        node,
        resources=resources,
        traffic=traffic,
        bundle_count=counts[0],
        topic_count=counts[1],
        greatest_usage=greatest_usage_in_64_bits(resources, settings.weights),
        smoothed_usage=usage,
        smoothed_bytes_per_s=throughput,
        updated_at_ms=now_ms,
    )

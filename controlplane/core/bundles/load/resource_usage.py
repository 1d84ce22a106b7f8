"""The weighted usage of a node's resources (Pulsar's ResourceUsage and LocalBrokerData)."""

import ctypes
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from controlplane.core.bundles.load.ieee import divide
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable

BYTES_PER_MIB: Final = 1_048_576
_GREATEST_FLOAT32: Final = (2 - 2**-23) * 2.0**127


class NodeResources(Protocol):
    """The resources that count, for example of a :class:`controlplane.core.bundles.reports.LoadReport`."""

    @property
    def cpu(self) -> ResourceUsage:
        """Percent of one core."""
        ...

    @property
    def direct_memory(self) -> ResourceUsage:
        """MiB outside the heap."""
        ...

    @property
    def bandwidth_in(self) -> ResourceUsage:
        """Kbit/s."""
        ...

    @property
    def bandwidth_out(self) -> ResourceUsage:
        """Kbit/s."""
        ...


class NodeMemory(NodeResources, Protocol):
    """The resources that count in the extensible manager: the heap as well."""

    @property
    def memory(self) -> ResourceUsage:
        """MiB of the heap."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """Weights of the resources. The defaults are Pulsar's.

    Attributes:
        cpu: weight of the processors.
        direct_memory: weight of the memory outside the heap; 0 excludes it.
        bandwidth_in: weight of inbound traffic.
        bandwidth_out: weight of outbound traffic.
        memory: weight of the heap, in the extensible manager only. It is 0, because a garbage-collected heap is always
            full.
        former_bandwidth_in, former_bandwidth_out: the weight under its misspelt name of old configurations. It counts
            if the weight under the new name is 1, its default.
        keeps_infinite_usage: a usage that is too great for a 32-bit float is infinite, as in Pulsar, and stays in a
            smoothed usage forever. Off, it is the greatest 32-bit float.
    """

    cpu: float = knob("loadBalancerCPUResourceWeight", 1.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    direct_memory: float = knob("loadBalancerDirectMemoryResourceWeight", 0.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    bandwidth_in: float = knob("loadBalancerBandwidthInResourceWeight", 1.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    bandwidth_out: float = knob("loadBalancerBandwidthOutResourceWeight", 1.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    memory: float = knob("loadBalancerMemoryResourceWeight", 0.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    former_bandwidth_in: float = knob("loadBalancerBandwithInResourceWeight", 1.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    former_bandwidth_out: float = knob(
        "loadBalancerBandwithOutResourceWeight", 1.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE
    )
    keeps_infinite_usage: bool = False

    def __post_init__(self) -> None:
        """Refuse negative weights: with them the busiest node would count as idle."""
        refuse_unusable(self)

    @property
    def inbound(self) -> float:
        """The weight of inbound traffic that counts."""
        return self.bandwidth_in if self.bandwidth_in != 1 else self.former_bandwidth_in

    @property
    def outbound(self) -> float:
        """The weight of outbound traffic that counts."""
        return self.bandwidth_out if self.bandwidth_out != 1 else self.former_bandwidth_out


DEFAULT_WEIGHTS: Final = ResourceWeights()


def _to_float32(value: float) -> float:
    return ctypes.c_float(value).value


def _saturated(value: float) -> float:
    return max(-_GREATEST_FLOAT32, min(_to_float32(value), _GREATEST_FLOAT32))


def percent_usage(resource: ResourceUsage, *, keeps_infinite: bool = False) -> float:
    """Usage in percent of the limit, with the precision of a 32-bit float; 0 if the limit is unknown.

    Pulsar computes this figure in 32 bits, and the difference to 64 bits can change a comparison with a threshold.

    Args:
        resource: usage and limit, in the same unit.
        keeps_infinite: answer with infinity or NaN where Pulsar does. Otherwise such a figure is the greatest 32-bit
            float, a usage that is not a number counts as 0, and so small a limit that it is 0 in 32 bits as unknown.
    """
    if keeps_infinite:
        share = _to_float32(divide(_to_float32(resource.usage), _to_float32(resource.limit)))
        return _to_float32(share * 100) if resource.limit > 0 else 0.0
    limit = _saturated(resource.limit)
    if limit <= 0 or math.isnan(resource.usage):
        return 0.0
    # A quotient or product of two 32-bit values, taken in 64 bits and rounded once, is the 32-bit result.
    return _saturated(_saturated(_saturated(resource.usage) / limit) * 100)


def _greatest(values: Iterable[float]) -> float:
    greatest = -math.inf
    for value in values:
        greatest = max(greatest, value)  # in this order: NaN is not greater than anything, as in Pulsar
    return greatest


def _percentages(node: NodeResources, *, keeps_infinite: bool) -> tuple[float, float, float, float]:
    resources = (node.cpu, node.direct_memory, node.bandwidth_in, node.bandwidth_out)
    cpu, direct_memory, bandwidth_in, bandwidth_out = (
        percent_usage(each, keeps_infinite=keeps_infinite) for each in resources
    )
    return cpu, direct_memory, bandwidth_in, bandwidth_out


def _weighted(node: NodeResources, weights: ResourceWeights) -> tuple[float, float, float, float]:
    cpu, direct_memory, bandwidth_in, bandwidth_out = _percentages(node, keeps_infinite=weights.keeps_infinite_usage)
    return (
        cpu * weights.cpu,
        direct_memory * weights.direct_memory,
        bandwidth_in * weights.inbound,
        bandwidth_out * weights.outbound,
    )


def weighted_usage(node: NodeResources, weights: ResourceWeights) -> float:
    """The greatest weighted usage of a node's resources; 1.0 means 100 percent.

    It is Pulsar's ``LocalBrokerData.getMaxResourceUsageWithWeight``. Heap memory does not count, because a
    garbage-collected heap is always full.
    """
    return _greatest(_weighted(node, weights)) / 100


def weighted_usage_with_memory(node: NodeMemory, weights: ResourceWeights) -> float:
    """The same with the heap and its weight: the extensible ``BrokerLoadData.getMaxResourceUsageWithWeight``."""
    memory = percent_usage(node.memory, keeps_infinite=weights.keeps_infinite_usage) * weights.memory
    return _greatest((*_weighted(node, weights), memory)) / 100


def greatest_usage(node: NodeResources, weights: ResourceWeights = DEFAULT_WEIGHTS) -> float:
    """The greatest usage of a node's resources without weights, a 32-bit float; 1.0 means 100 percent.

    It is Pulsar's ``LocalBrokerData.getMaxResourceUsage``. Of ``weights`` only the rule for infinite figures counts.
    """
    return _to_float32(_greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100)


def greatest_usage_with_memory(node: NodeMemory, weights: ResourceWeights = DEFAULT_WEIGHTS) -> float:
    """The same with the heap, as Pulsar 2 has it."""
    keeps_infinite = weights.keeps_infinite_usage
    memory = percent_usage(node.memory, keeps_infinite=keeps_infinite)
    return _to_float32(_greatest((*_percentages(node, keeps_infinite=keeps_infinite), memory)) / 100)


def greatest_usage_in_64_bits(node: NodeResources, weights: ResourceWeights = DEFAULT_WEIGHTS) -> float:
    """Like :func:`greatest_usage`, divided in 64 bits: the extensible ``BrokerLoadData.getMaxResourceUsage``."""
    return _greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100


def measured_usage(node: NodeMemory, weights: ResourceWeights, *, unweighted: bool) -> float:
    """The usage that a rule with a switch for Pulsar 2 compares: weighted, or that of all five resources alike."""
    return greatest_usage_with_memory(node, weights) if unweighted else weighted_usage(node, weights)

"""The weighted usage of a node's resources (Pulsar's ResourceUsage and LocalBrokerData)."""

import ctypes
from dataclasses import dataclass
from typing import Final, Protocol

from controlplane.core.bundles.reports import ResourceUsage
from controlplane.errors import ConfigurationError

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


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """Weights of the resources. The defaults are Pulsar's.

    Attributes:
        cpu: loadBalancerCPUResourceWeight.
        direct_memory: loadBalancerDirectMemoryResourceWeight; 0 excludes it.
        bandwidth_in: loadBalancerBandwidthInResourceWeight.
        bandwidth_out: loadBalancerBandwidthOutResourceWeight.
    """

    cpu: float = 1.0
    direct_memory: float = 0.0
    bandwidth_in: float = 1.0
    bandwidth_out: float = 1.0

    def __post_init__(self) -> None:
        """Refuse negative weights: with them the busiest node would count as idle."""
        if not all(weight >= 0 for weight in (self.cpu, self.direct_memory, self.bandwidth_in, self.bandwidth_out)):
            message = f"resource weights have to be 0 or greater, not {self}"
            raise ConfigurationError(message)


def _to_float32(value: float) -> float:
    # Saturates instead of returning infinity, because an infinite usage would stay in a node's smoothed usage forever.
    return max(-_GREATEST_FLOAT32, min(ctypes.c_float(value).value, _GREATEST_FLOAT32))


def percent_usage(resource: ResourceUsage) -> float:
    """Usage in percent of the limit, with the precision of a 32-bit float; 0 if the limit is unknown.

    Pulsar computes this figure in 32 bits, and the difference to 64 bits can change a comparison with a threshold.
    """
    limit = _to_float32(resource.limit)
    if limit <= 0:  # also where the limit is smaller than every 32-bit number
        return 0.0
    # A quotient or product of two 32-bit values, taken in 64 bits and rounded once, is the 32-bit result.
    return _to_float32(_to_float32(_to_float32(resource.usage) / limit) * 100)


def weighted_usage(node: NodeResources, weights: ResourceWeights) -> float:
    """The greatest weighted usage of a node's resources; 1.0 means 100 percent.

    It is Pulsar's ``getMaxResourceUsageWithWeight``. Heap memory does not count, because a garbage-collected heap is
    always full.
    """
    weighted = (
        percent_usage(node.cpu) * weights.cpu,
        percent_usage(node.direct_memory) * weights.direct_memory,
        percent_usage(node.bandwidth_in) * weights.bandwidth_in,
        percent_usage(node.bandwidth_out) * weights.bandwidth_out,
    )
    return max(weighted) / 100

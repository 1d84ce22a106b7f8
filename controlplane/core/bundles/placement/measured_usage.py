"""The usage of a node as placement measures it."""

import ctypes
import math

from controlplane.core.bundles.load.resource_usage import ResourceWeights, percent_usage, weighted_usage
from controlplane.core.bundles.load.view import NodeLoad


def measured_usage(load: NodeLoad, weights: ResourceWeights, *, unweighted: bool) -> float:
    """The greatest usage of a node's resources; 1.0 means 100 percent.

    Args:
        load: the node's load.
        weights: weights of the resources; heap memory does not count.
        unweighted: all five resources count alike, heap memory included, with a 32-bit result (Pulsar 2).
    """
    if not unweighted:
        return weighted_usage(load, weights)
    resources = (load.cpu, load.memory, load.direct_memory, load.bandwidth_in, load.bandwidth_out)
    return ctypes.c_float(max(map(percent_usage, resources)) / 100).value


def is_plausible(value: float) -> bool:
    """Whether a figure can be a load: a number that is neither negative nor infinite."""
    return math.isfinite(value) and value >= 0

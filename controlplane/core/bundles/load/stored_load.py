"""The load that a node of the extensible load manager stores for the others (Pulsar's BrokerLoadData)."""

from typing import NamedTuple


class StoredLoad(NamedTuple):
    """What the leader and the placement read of it.

    Attributes:
        smoothed_usage: weighted usage, smoothed by the node itself; 1.0 means 100 percent.
        topic_count: its topics.
        smoothed_bytes_per_s: smoothed throughput, in plus out.
        bytes_per_s: throughput in the latest sample, in plus out.
        updated_at_ms: when the sample was taken; the clock of the node.
    """

    smoothed_usage: float
    topic_count: int = 0
    smoothed_bytes_per_s: float = 0.0
    bytes_per_s: float = 0.0
    updated_at_ms: int = 0

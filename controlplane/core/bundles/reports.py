"""What nodes report of bundles, and the load report of a whole node."""

from dataclasses import dataclass
from typing import NamedTuple

from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.core.values.replica_status import ReplicaStatus


class BundleStatus(NamedTuple):
    """One bundle as its owner sees it."""

    bundle_id: str
    status: ReplicaStatus


class ResourceUsage(NamedTuple):
    """Use of one limited resource in its own unit; (-1, -1) means unknown (Pulsar's ResourceUsage)."""

    usage: float
    limit: float


class BundleLoad(NamedTuple):
    """Load of one bundle since the last report (Pulsar's NamespaceBundleStats)."""

    bundle_id: str
    message_rate_in_per_s: float
    message_rate_out_per_s: float
    throughput_in_bytes_per_s: float
    throughput_out_bytes_per_s: float
    topic_count: int
    producer_count: int
    consumer_count: int
    cache_size_bytes: int


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a node's work costs. Topic ``load-reports``, key ``node_id`` (Pulsar's LocalBrokerData).

    Attributes:
        cpu: percent of one core, limit 100 x cores.
        memory: MiB of heap or resident memory.
        direct_memory: MiB outside the heap.
        bandwidth_in: Kbit/s.
        bandwidth_out: Kbit/s.
        addresses: where the node serves, by name.
        version: the node software's version.
        started_at_ms: the node's wall clock at process start.
        bundles: one per bundle that it owns.
        slots: one per slot that it leads, where it measures them.
    """

    node_id: NodeId
    incarnation: Incarnation
    sent_at_ms: int
    cpu: ResourceUsage
    memory: ResourceUsage
    direct_memory: ResourceUsage
    bandwidth_in: ResourceUsage
    bandwidth_out: ResourceUsage
    addresses: tuple[Address, ...]
    version: str
    started_at_ms: int
    bundles: tuple[BundleLoad, ...]
    slots: tuple[SlotLoad, ...]

"""Reports of nodes: the status of bundles in heartbeats, and load reports."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.core.values.replica_status import ReplicaStatus


class BundleStatus(NamedTuple):
    """The status of a bundle, as its owner reports it in a heartbeat."""

    bundle_id: str
    status: ReplicaStatus


class BundleStep(Enum):
    """What a node has done in a handoff of a bundle."""

    RELEASED = "released"
    """It accepts nothing for the bundle any more, and what it had accepted has ended or was voided."""
    OPENED = "opened"
    """It can serve the bundle, as soon as it is the owner."""
    DIVIDED = "divided"
    """It is ready for the split. If it was asked for the bounds, it reports them."""


class BundleStepReport(NamedTuple):
    """What a node reports, in a heartbeat, that it has done for a bundle in flight.

    Attributes:
        bundle_id: the bundle.
        version: the version of the row that it has followed; a report for another version counts for nothing.
        step: what it has done.
        bounds: after a split by topics, the inner bounds of the parts, ascending; empty if there are none.
    """

    bundle_id: str
    version: int
    step: BundleStep
    bounds: tuple[int, ...] = ()


class ResourceUsage(NamedTuple):
    """Usage and limit of a resource, in its unit; (-1, -1) means unknown (Pulsar's ResourceUsage)."""

    usage: float
    limit: float


class BundleLoad(NamedTuple):
    """The load of a bundle since the last report (Pulsar's NamespaceBundleStats)."""

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
    """The load report of a node. Topic ``load-reports``, key ``node_id`` (Pulsar's LocalBrokerData).

    Attributes:
        node_id: the node's name.
        incarnation: its process life.
        sent_at_ms: the node's wall clock at sending.
        cpu: percent of one core; the limit is 100 x cores.
        memory: heap or resident memory in MiB.
        direct_memory: memory outside the heap in MiB.
        bandwidth_in: inbound traffic in Kbit/s.
        bandwidth_out: outbound traffic in Kbit/s.
        addresses: the addresses at which the node serves.
        version: version of the node's software.
        started_at_ms: the node's wall clock at process start.
        bundles: one per bundle that the node owns.
        slots: one per slot that the node leads, if it measures them.
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

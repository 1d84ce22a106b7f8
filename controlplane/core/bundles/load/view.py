"""The view of loads on which the rules for bundles decide (Pulsar's LocalBrokerData, BrokerData and LoadData).

A view keeps the order in which nodes and bundles were given. Floating-point sums and ties depend on it, so the caller
defines it: the live system sorts by name.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import NO_LOAD, BundleAverages, MessageLoad, NodeAverages
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.settings.managers import MODULAR_MANAGER

UNKNOWN_USAGE: Final = ResourceUsage(-1.0, -1.0)
"""The class names of the load managers, which a node reports and the filters by class compare."""


class Resources(NamedTuple):
    """The resources of a machine, in the units of a load report (Pulsar's SystemResourceUsage)."""

    cpu: ResourceUsage = UNKNOWN_USAGE
    memory: ResourceUsage = UNKNOWN_USAGE
    direct_memory: ResourceUsage = UNKNOWN_USAGE
    bandwidth_in: ResourceUsage = UNKNOWN_USAGE
    bandwidth_out: ResourceUsage = UNKNOWN_USAGE


@dataclass(frozen=True, slots=True)
class BundleHistory:
    """What the leader knows of a bundle (Pulsar's BundleData).

    Attributes:
        averages: its short- and long-term averages.
        topic_count: topics in its latest sample.
    """

    averages: BundleAverages
    topic_count: int = 0


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load of a node in its latest report (Pulsar's LocalBrokerData).

    Attributes:
        node_id: the node's name, ``host:port`` where isolation policies match hosts.
        cpu, memory, direct_memory, bandwidth_in, bandwidth_out: resources in the units of a load report.
        traffic: the sums over all bundles.
        bundles: the ids of the bundles that the node serves, in the order of its report.
        stats: the latest sample of each bundle, in the order of the report.
        topic_count, bundle_count, consumer_count, producer_count: totals as the node counts them.
        bundle_gains, bundle_losses: bundles gained and lost since the last written report; a bundle that came and went
            is in both.
        updated_at_ms: when the report was made; the caller's clock.
        takes_persistent_topics, takes_non_persistent_topics: what the node serves.
        version: version of the node's software; empty if it reports none.
        manager: class name of its load manager.
    """

    node_id: str
    cpu: ResourceUsage = UNKNOWN_USAGE
    memory: ResourceUsage = UNKNOWN_USAGE
    direct_memory: ResourceUsage = UNKNOWN_USAGE
    bandwidth_in: ResourceUsage = UNKNOWN_USAGE
    bandwidth_out: ResourceUsage = UNKNOWN_USAGE
    traffic: MessageLoad = NO_LOAD
    bundles: tuple[str, ...] = ()
    stats: Mapping[str, BundleLoad] = field(default_factory=dict)
    topic_count: int = 0
    bundle_count: int = 0
    consumer_count: int = 0
    producer_count: int = 0
    bundle_gains: tuple[str, ...] = ()
    bundle_losses: tuple[str, ...] = ()
    updated_at_ms: int = 0
    takes_persistent_topics: bool = True
    takes_non_persistent_topics: bool = True
    version: str = ""
    manager: str = MODULAR_MANAGER


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the leader sees it (Pulsar's BrokerData).

    Attributes:
        load: its latest report.
        averages: the sums of the averages of its bundles.
        preallocated: bundles that were assigned to it and that it has not reported yet.
    """

    load: NodeLoad
    averages: NodeAverages = field(default=NodeAverages(NO_LOAD, NO_LOAD))
    preallocated: Mapping[str, BundleHistory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadView:
    """All nodes and bundles (Pulsar's LoadData).

    Attributes:
        nodes: the living nodes that have reported, by name, in the order of sums and scans.
        bundles: the known bundles, in the same sense.
        recently_unloaded: ids of bundles that were unloaded within the grace period; a placement is not told.
    """

    nodes: Mapping[str, NodeView]
    bundles: Mapping[str, BundleHistory] = field(default_factory=dict)
    recently_unloaded: AbstractSet[str] = frozenset()

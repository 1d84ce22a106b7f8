"""Settings of the load managers that belong to no single rule: which rules run, when, and on what.

The defaults are those of Pulsar 4.2. A field without a rule here is read by the part that its class is named after.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.load.knobs import knob
from controlplane.core.bundles.load.view import MODULAR_MANAGER
from controlplane.errors import ConfigurationError

_IMPLEMENTATIONS: Final = "org.apache.pulsar.broker.loadbalance.impl"
_CHANNEL: Final = "org.apache.pulsar.broker.loadbalance.extensions.channel"
_TABLE_VIEWS: Final = ("ServiceUnitStateTableViewImpl", "ServiceUnitStateMetadataStoreTableViewImpl")
_NAMING: Final = "org.apache.pulsar.common.naming"
_NO_SYNCER: Final = "None"
RANGE_EQUALLY_DIVIDE: Final = "range_equally_divide"
SPLIT_ALGORITHMS: Final = (
    RANGE_EQUALLY_DIVIDE,
    "topic_count_equally_divide",
    "specified_positions_divide",
    "flow_or_qps_equally_divide",
)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Which manager and which rules decide, and whether they run.

    Attributes:
        manager: class name of the load manager.
        shedder: class name of the rule for shedding.
        placement: class name of the rule for placement.
        is_enabled: the leader's tasks run.
        sheds: the leader sheds bundles.
        serves_persistent_topics: whether a node takes persistent topics.
        serves_non_persistent_topics: whether a node takes non-persistent topics.
    """

    manager: str = knob("loadManagerClassName", MODULAR_MANAGER)
    shedder: str = knob("loadBalancerLoadSheddingStrategy", f"{_IMPLEMENTATIONS}.ThresholdShedder")
    placement: str = knob("loadBalancerLoadPlacementStrategy", f"{_IMPLEMENTATIONS}.LeastLongTermMessageRate")
    is_enabled: bool = knob("loadBalancerEnabled", default=True)
    sheds: bool = knob("loadBalancerSheddingEnabled", default=True)
    serves_persistent_topics: bool = knob("enablePersistentTopics", default=True)
    serves_non_persistent_topics: bool = knob("enableNonPersistentTopics", default=True)


@dataclass(frozen=True, slots=True)
class TaskPeriods:
    """How often the tasks of nodes and of the leader run, and how long their results count.

    Attributes:
        host_usage_min: period in which nodes measure their machine.
        stats_s: period in which nodes measure their bundles. The busiest bundles are reported when these change.
        first_stats_s: time from a node's start to its first measurement of bundles.
        store_averages_min: period in which the leader stores averages.
        shed_min: period in which the leader sheds.
        recently_unloaded_min: a bundle that was unloaded is not shed again for so long.
        split_min: period in which owners look for bundles to split, in the extensible manager.
    """

    host_usage_min: int = knob("loadBalancerHostUsageCheckIntervalMinutes", 1)
    stats_s: int = knob("statsUpdateFrequencyInSecs", 60)
    first_stats_s: int = knob("statsUpdateInitialDelayInSecs", 60)
    store_averages_min: int = knob("loadBalancerResourceQuotaUpdateIntervalMinutes", 15)
    shed_min: int = knob("loadBalancerSheddingIntervalMinutes", 1)
    recently_unloaded_min: int = knob("loadBalancerSheddingGracePeriodMinutes", 30)
    split_min: int = knob("loadBalancerSplitIntervalMinutes", 1)

    def __post_init__(self) -> None:
        """Refuse periods with which a task would never end, or never begin.

        Raises:
            ConfigurationError: a period is 0 or negative, or a delay is negative.
        """
        periods = (self.host_usage_min, self.stats_s, self.store_averages_min, self.shed_min, self.split_min)
        if not all(period > 0 for period in periods) or self.first_stats_s < 0 or self.recently_unloaded_min < 0:
            message = f"periods have to be greater than 0, and delays 0 or greater, not {self}"
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class OwnershipSettings:
    """How ownership of bundles changes hands.

    Attributes:
        unload_timeout_ms: time for a bundle's former owner to close its topics.
        shutdown_timeout_ms: time for a node to give away all its bundles when it stops.
        session_timeout_ms: a node without contact to the metadata store for so long is dead.
        operation_timeout_s: time for one operation of the metadata store.
        tombstone_delay_s: a bundle without an owner is forgotten after this time; at least ``in_flight_ms``.
        in_flight_ms: time for a state to be followed by the next one.
        monitor_s: period in which the leader looks for states that are stuck and for owners that are dead.
        max_concurrent_overrides: bundles of a dead owner that get another one at the same time.
        unloads_in_phases: a former owner keeps its connections until the new owner is ready (PIP-307).
        table_view: class name of the store of ownership.
        table_view_syncer: direction in which two such stores are kept alike; ``None`` for none.
    """

    unload_timeout_ms: int = knob("namespaceBundleUnloadingTimeoutMs", 60_000)
    shutdown_timeout_ms: int = knob("brokerShutdownTimeoutMs", 60_000)
    session_timeout_ms: int = knob("metadataStoreSessionTimeoutMillis", 30_000)
    operation_timeout_s: int = knob("metadataStoreOperationTimeoutSeconds", 30)
    tombstone_delay_s: int = knob("loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", 3_600)
    in_flight_ms: int = knob("loadBalancerInFlightServiceUnitStateWaitingTimeInMillis", 30_000)
    monitor_s: int = knob("loadBalancerServiceUnitStateMonitorIntervalInSeconds", 60)
    max_concurrent_overrides: int = knob("loadBalancerServiceUnitStateMaxConcurrentOverrides", 64)
    unloads_in_phases: bool = knob("loadBalancerMultiPhaseBundleUnload", default=True)
    table_view: str = knob("loadManagerServiceUnitStateTableViewClassName", f"{_CHANNEL}.ServiceUnitStateTableViewImpl")
    table_view_syncer: str = knob("loadBalancerServiceUnitTableViewSyncer", "None")

    def __post_init__(self) -> None:
        """Refuse a tombstone that comes before the next state can.

        Raises:
            ConfigurationError: ``tombstone_delay_s`` is shorter than ``in_flight_ms``.
        """
        if self.tombstone_delay_s * 1_000 < self.in_flight_ms:
            message = (
                f"a bundle cannot be forgotten after {self.tombstone_delay_s} s, because its state may be in flight "
                f"for {self.in_flight_ms} ms"
            )
            raise ConfigurationError(message)
        _require_known(self.table_view, _CHANNEL, _TABLE_VIEWS, "store of ownership")
        if self.table_view_syncer != _NO_SYNCER:
            message = f"a syncer of ownership is not offered: take {_NO_SYNCER!r}, not {self.table_view_syncer!r}"
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """How namespaces are divided into bundles.

    Attributes:
        bundle_count: bundles of a namespace that is created without a number.
        split_algorithm: the algorithm of a split that names none.
        split_algorithms: the algorithms that a split may name.
        topic_assignment: class name of the rule that maps topics to bundles.
    """

    bundle_count: int = knob("defaultNumberOfNamespaceBundles", 4)
    split_algorithm: str = knob("defaultNamespaceBundleSplitAlgorithm", RANGE_EQUALLY_DIVIDE)
    split_algorithms: tuple[str, ...] = knob("supportedNamespaceBundleSplitAlgorithms", SPLIT_ALGORITHMS)
    topic_assignment: str = knob(
        "topicBundleAssignmentStrategy", "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner"
    )

    def __post_init__(self) -> None:
        """Refuse an algorithm that nobody knows.

        Raises:
            ConfigurationError: an algorithm is unknown, or the default is not among the supported ones.
        """
        unknown = [each for each in self.split_algorithms if each not in SPLIT_ALGORITHMS]
        if unknown or self.split_algorithm not in self.split_algorithms:
            message = (
                f"unknown split algorithm {(*unknown, self.split_algorithm)[0]!r}: it has to be one of "
                f"{', '.join(SPLIT_ALGORITHMS)}, and the default has to be a supported one"
            )
            raise ConfigurationError(message)
        _require_known(
            self.topic_assignment, _NAMING, ("ConsistentHashingTopicBundleAssigner",), "assignment of topics"
        )


def _require_known(name: str, package: str, known: tuple[str, ...], what: str) -> None:
    """Refuse the name of a class, with or without its package, that is not one of the known ones."""
    if name not in {*known, *(f"{package}.{each}" for each in known)}:
        message = f"{what} {name!r} is unknown or not offered: take {' or '.join(known)}"
        raise ConfigurationError(message)

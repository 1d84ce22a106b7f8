"""Settings of the load managers that belong to no single rule: which rules run, when, and on what.

The defaults are those of Pulsar 4.2. A field without a rule here is read by the part that its class is named after.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.names import ANY_FORM
from controlplane.core.bundles.settings.allowed import BUNDLES_OF_A_NAMESPACE, NOT_NEGATIVE, POSITIVE, KnobRefusedError
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable, require_known
from controlplane.core.bundles.settings.managers import MODULAR_MANAGER

_IMPLEMENTATIONS: Final = "org.apache.pulsar.broker.loadbalance.impl"
_NAMING: Final = "org.apache.pulsar.common.naming"
_SPLIT_ALGORITHM: Final = "defaultNamespaceBundleSplitAlgorithm"
_SPLIT_ALGORITHMS: Final = "supportedNamespaceBundleSplitAlgorithms"
_ASSIGNMENT: Final = "topicBundleAssignmentStrategy"
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
        node_filters: names of users' own filters of nodes, in the order in which they are asked, after Pulsar's.
        is_enabled: the leader's tasks run.
        sheds: the leader sheds bundles.
        sheds_on_implausible_loads: the shedder sees all loads, as in Pulsar: one figure that is not a number can make
            it unload a bundle of every node. Off, it does not see a node or a bundle with a figure that cannot be true.
        serves_persistent_topics: whether a node takes persistent topics.
        serves_non_persistent_topics: whether a node takes non-persistent topics.
    """

    manager: str = knob("loadManagerClassName", MODULAR_MANAGER)
    shedder: str = knob("loadBalancerLoadSheddingStrategy", f"{_IMPLEMENTATIONS}.ThresholdShedder")
    placement: str = knob("loadBalancerLoadPlacementStrategy", f"{_IMPLEMENTATIONS}.LeastLongTermMessageRate")
    node_filters: tuple[str, ...] = knob("nodeFilters", ())
    is_enabled: bool = knob("loadBalancerEnabled", default=True)
    sheds: bool = knob("loadBalancerSheddingEnabled", default=True)
    sheds_on_implausible_loads: bool = False
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

    host_usage_min: int = knob("loadBalancerHostUsageCheckIntervalMinutes", 1, POSITIVE, accepted=POSITIVE)
    stats_s: int = knob("statsUpdateFrequencyInSecs", 60, POSITIVE, accepted=POSITIVE)
    first_stats_s: int = knob("statsUpdateInitialDelayInSecs", 60, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    store_averages_min: int = knob("loadBalancerResourceQuotaUpdateIntervalMinutes", 15, POSITIVE, accepted=POSITIVE)
    shed_min: int = knob("loadBalancerSheddingIntervalMinutes", 1, POSITIVE, accepted=POSITIVE)
    recently_unloaded_min: int = knob("loadBalancerSheddingGracePeriodMinutes", 30, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    split_min: int = knob("loadBalancerSplitIntervalMinutes", 1, POSITIVE, accepted=POSITIVE)

    def __post_init__(self) -> None:
        """Refuse periods with which a task would never end, or never begin.

        Raises:
            ConfigurationError: a period is 0 or negative, or a delay is negative.
        """
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """How namespaces are divided into bundles.

    Attributes:
        bundle_count: bundles of a namespace that is created without a number.
        split_algorithm: the algorithm of a split that names none.
        split_algorithms: the algorithms that a split may name.
        topic_assignment: class name of the rule that maps topics to bundles.
        name_part_counts: how many parts a namespace's name may have. Our own policy allows all three forms of
            :data:`controlplane.core.bundles.names.ANY_FORM`, Pulsar 4 the two parts alone, Pulsar 2 two or three.
        last_hash_has_no_bundle: a topic with the hash 0xffffffff has no bundle: Pulsar's look-up searches the bounds
            and leaves the last one out, although the last range is closed.
    """

    bundle_count: int = knob("defaultNumberOfNamespaceBundles", 4, BUNDLES_OF_A_NAMESPACE)
    split_algorithm: str = knob(_SPLIT_ALGORITHM, RANGE_EQUALLY_DIVIDE)
    split_algorithms: tuple[str, ...] = knob(_SPLIT_ALGORITHMS, SPLIT_ALGORITHMS)
    topic_assignment: str = knob(_ASSIGNMENT, "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner")
    name_part_counts: tuple[int, ...] = ANY_FORM
    last_hash_has_no_bundle: bool = False

    def __post_init__(self) -> None:
        """Refuse a default that no split may name. Whether the algorithms exist is known to the registry of rules.

        Raises:
            ConfigurationError: the default is not among the supported algorithms.
        """
        if self.split_algorithm not in self.split_algorithms:
            raise KnobRefusedError(
                f"{_SPLIT_ALGORITHM} is {self.split_algorithm!r}, allowed is one of {_SPLIT_ALGORITHMS}: "
                f"{', '.join(self.split_algorithms) or 'there are none'}",
                _SPLIT_ALGORITHM,
                _SPLIT_ALGORITHMS,
            )
        require_known(_ASSIGNMENT, self.topic_assignment, _NAMING, ("ConsistentHashingTopicBundleAssigner",))

"""The profiles: their names, what each decides like, and the values of settings in which each differs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.leading.manager_tasks import TaskSettings
from controlplane.core.bundles.load.leader_fold import FoldSettings, PreallocationEnd
from controlplane.core.bundles.load.load_order import NearTies
from controlplane.core.bundles.load.report_rule import ReportSettings
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.smoothed_node import SmoothingSettings
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.placement.extensible import ExtensiblePlacementSettings
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import LeastResourceUsageSettings
from controlplane.core.bundles.placement.modular import ModularPlacementSettings
from controlplane.core.bundles.placement.shed_checks import ShedCheckSettings
from controlplane.core.bundles.profiles.pulsar_rules import AVERAGE, EXTENSIBLE_LEAST_USAGE, OVERLOAD, TRANSFER
from controlplane.core.bundles.profiles.registry import Part
from controlplane.core.bundles.settings.manager_settings import (
    ManagerSettings,
    NamespaceSettings,
    TaskPeriods,
)
from controlplane.core.bundles.settings.managers import EXTENSIBLE_MANAGER
from controlplane.core.bundles.shedding.avg_shedder import AvgShedderSettings
from controlplane.core.bundles.shedding.overload import OverloadSettings
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.shedding.transfer import TransferSettings
from controlplane.core.bundles.shedding.uniform import UniformSettings
from controlplane.core.bundles.splitting.algorithms import TrafficSplitSettings
from controlplane.core.bundles.splitting.execution import SplitExecutionSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from controlplane.core.bundles.splitting.owner_task import OwnerSplitSettings

CONTROLPLANE: Final = "controlplane"
PULSAR_4_2_MODULAR: Final = "pulsar-4.2-modular"
PULSAR_4_2_EXTENSIBLE: Final = "pulsar-4.2-extensible"
PULSAR_4_0_MODULAR: Final = "pulsar-4.0-modular"
PULSAR_4_X_AVG: Final = "pulsar-4.x-avg"
PULSAR_2_MODULAR: Final = "pulsar-2-modular"


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of settings.

    Attributes:
        name: its name.
        description: what it decides like.
        based_on: the profile whose values count where this one has none; None for the defaults of our own policy.
        assumed: knobs whose values are assumed, because the original's are not published, or were others in some of the
            versions that the profile stands for.
        assumption: a sentence on what is assumed of them; empty without any.
        refuses_unreasonable_values: knobs may have only the values in the ranges of our own policy. Otherwise they may
            have what Pulsar takes, also values with which a rule acts always or never.
    """

    name: str
    description: str
    based_on: str | None = None
    assumed: tuple[str, ...] = ()
    assumption: str = ""
    refuses_unreasonable_values: bool = False


PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(
            CONTROLPLANE,
            "Our own policy: the rules of Pulsar 4.2's modular manager without its quirks.",
            refuses_unreasonable_values=True,
        ),
        Profile(PULSAR_4_2_MODULAR, "Pulsar 4.2, modular load manager."),
        Profile(PULSAR_4_2_EXTENSIBLE, "Pulsar 4.2, extensible load manager.", PULSAR_4_2_MODULAR),
        Profile(PULSAR_4_0_MODULAR, "Pulsar 4.0 before 4.0.7, modular load manager.", PULSAR_4_2_MODULAR),
        Profile(
            PULSAR_4_X_AVG,
            "Pulsar after #26609, modular load manager: AvgShedder sheds and places, and plans by the bundle's name. "
            "Its numbers are assumed to be those of 4.2.",
            PULSAR_4_2_MODULAR,
            assumed=(
                "loadBalancerAvgShedderLowThreshold",
                "loadBalancerAvgShedderHighThreshold",
                "loadBalancerAvgShedderHitCountLowThreshold",
                "loadBalancerAvgShedderHitCountHighThreshold",
                "minUnloadMessage",
                "minUnloadMessageThroughput",
                "maxUnloadPercentage",
            ),
            assumption="they are those of 4.2, because those after #26609 are not published.",
        ),
        Profile(
            PULSAR_2_MODULAR,
            "Pulsar 2, modular load manager, with the numbers of 4.2. The weights of memory are assumed to be those of "
            "4.2; where a version before 2.10 uses ThresholdShedder, they are 1.",
            PULSAR_4_2_MODULAR,
            assumed=("loadBalancerMemoryResourceWeight", "loadBalancerDirectMemoryResourceWeight"),
            assumption="they are 0 as in 4.2, and were 1 before 2.10, which only rules that use weights notice.",
        ),
    )
}

PARTS: Final = (
    Part(
        ManagerSettings,
        {
            PULSAR_4_2_MODULAR: {"sheds_on_implausible_loads": True},
            PULSAR_4_2_EXTENSIBLE: {
                "manager": EXTENSIBLE_MANAGER,
                "shedder": TRANSFER,
                "placement": EXTENSIBLE_LEAST_USAGE,
            },
            PULSAR_4_X_AVG: {"shedder": AVERAGE, "placement": AVERAGE},
            PULSAR_2_MODULAR: {"shedder": OVERLOAD},
        },
    ),
    Part(TaskPeriods),
    Part(OwnershipSettings),
    Part(
        NamespaceSettings,
        {
            PULSAR_4_2_MODULAR: {"name_part_counts": (2,), "last_hash_has_no_bundle": True},
            PULSAR_2_MODULAR: {"name_part_counts": (2, 3)},
        },
    ),
    Part(ResourceWeights, {PULSAR_4_2_MODULAR: {"keeps_infinite_usage": True}}),
    Part(SmoothingSettings, {PULSAR_4_2_MODULAR: {"averages_implausible_loads": True}}),
    Part(
        ReportSettings,
        {
            PULSAR_4_2_MODULAR: {"ignores_unmeasurable_change": True},
            PULSAR_2_MODULAR: {"compares_unweighted_usage": True},
        },
    ),
    Part(
        FoldSettings,
        {
            PULSAR_4_2_MODULAR: {
                "samples_unchanged_reports": True,
                "samples_implausible_loads": True,
                "preallocation_end": PreallocationEnd.REPORTED_OR_NOT_OWNED_BY_LEADER,
            },
            PULSAR_4_0_MODULAR: {"near_ties": NearTies.THRESHOLD},
            PULSAR_2_MODULAR: {
                "preallocation_end": PreallocationEnd.ANY_REPORTED,
                "keeps_unreported_bundles": True,
                "near_ties": NearTies.THRESHOLD,
            },
        },
    ),
    Part(
        TopBundlesSettings,
        {
            PULSAR_4_0_MODULAR: {"includes_idle_bundles": True, "near_ties": NearTies.THRESHOLD},
            PULSAR_2_MODULAR: {"includes_idle_bundles": True, "near_ties": NearTies.THRESHOLD},
        },
    ),
    Part(ThresholdSettings, {PULSAR_4_2_MODULAR: {"smooths_again_for_lower_boundary": True}}),
    Part(OverloadSettings, {PULSAR_2_MODULAR: {"compares_unweighted_usage": True, "takes_any_known_bundle": True}}),
    Part(UniformSettings, {PULSAR_4_2_MODULAR: {"counts_in_32_bits": True}}),
    Part(
        AvgShedderSettings,
        {PULSAR_4_2_MODULAR: {"plans_by_averages": True}, PULSAR_4_X_AVG: {"plans_by_averages": False}},
    ),
    Part(
        TransferSettings,
        {
            PULSAR_4_2_MODULAR: {
                "counts_swap_gain_in_debug_mode_only": True,
                "swaps_any_bundle": True,
                "pairs_outdated_nodes": True,
            }
        },
    ),
    Part(
        LeastMessageRateSettings,
        {PULSAR_4_2_MODULAR: {"checks_loads": False}, PULSAR_2_MODULAR: {"compares_unweighted_usage": True}},
    ),
    Part(LeastResourceUsageSettings, {PULSAR_4_2_MODULAR: {"checks_loads": False}}),
    Part(
        ModularPlacementSettings,
        {
            PULSAR_4_2_MODULAR: {
                "drops_other_managers": True,
                "checks_loads": False,
                "skips_names_without_port": True,
                "shares_named_nodes_by_range": True,
                "follows_preallocation_to_missing_node": True,
            },
            PULSAR_2_MODULAR: {"compares_unweighted_usage": True, "drops_other_managers": False},
        },
    ),
    Part(ExtensiblePlacementSettings, {PULSAR_4_2_MODULAR: {"skips_names_without_port": True}}),
    Part(ShedCheckSettings, {PULSAR_2_MODULAR: {"asks_policies": False, "names_destination": False}}),
    Part(
        SplitSettings,
        {
            PULSAR_2_MODULAR: {
                "min_topics": 0,
                "limits_sessions_below_one": True,
                "ignores_splits_of_the_round": True,
                "min_nodes": 0,
            }
        },
    ),
    Part(SplitExecutionSettings, {PULSAR_2_MODULAR: {"unloads_by_setting_alone": True}}),
    Part(OwnerSplitSettings, {PULSAR_4_2_MODULAR: {"compares_namespaces_by_prefix": True}}),
    Part(TrafficSplitSettings, {PULSAR_4_2_MODULAR: {"accepts_any_rate": True}}),
    Part(TaskSettings),
)

KNOBS_WITHOUT_EFFECT: Final[Mapping[str, object]] = {
    "loadBalancerPlacementStrategy": "leastLoadedServer",
    "loadBalancerBrokerUnderloadedThresholdPercentage": 50,
    "loadBalancerBrokerComfortLoadLevelPercentage": 65,
    "loadBalancerOverrideBrokerNics": (),
    "loadBalancerOverrideBrokerNicSpeedGbps": None,
    "zooKeeperSessionTimeoutMillis": -1,
    "zooKeeperOperationTimeoutSeconds": -1,
    "zookeeperSessionExpiredPolicy": "reconnect",
}
"""Knobs that are accepted with any value: of the simple load manager, which is not offered; of how a node of Pulsar
measures its network, which is up to each node here; and of ZooKeeper, which is not used. The values are Pulsar's
defaults."""

UNREAD_KNOBS: Final = frozenset(
    {
        "brokerShutdownTimeoutMs",
        "defaultNumberOfNamespaceBundles",
        "enableNonPersistentTopics",
        "enablePersistentTopics",
        "loadBalancerServiceUnitStateMaxConcurrentOverrides",
        "loadBalancerServiceUnitTableViewSyncer",
        "loadBalancerSheddingGracePeriodMinutes",
        "metadataStoreOperationTimeoutSeconds",
        "metadataStoreSessionTimeoutMillis",
        "namespaceBundleUnloadingTimeoutMs",
        "topicBundleAssignmentStrategy",
    }
)
"""Knobs that are checked, and that no rule reads: they have no effect either. A knob is read by a rule, or is in one of
these two lists."""

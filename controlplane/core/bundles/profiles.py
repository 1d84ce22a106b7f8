"""Profiles: named sets of settings with which the rules for bundles decide like a version of Pulsar, or our own way.

A profile sets every knob and every switch of a quirk. It is composed from the settings classes and rules of a registry,
and single knobs can be overridden. A name that is unknown, and rules that do not go together, are refused; nothing is
chosen in their place (Pulsar replaced such a configuration silently, #26031).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from controlplane.core.bundles.leader_tasks import TaskSettings
from controlplane.core.bundles.load.knobs import values_of_knobs, with_knobs
from controlplane.core.bundles.load.leader_fold import FoldSettings, PreallocationEnd
from controlplane.core.bundles.load.load_order import NearTies
from controlplane.core.bundles.load.manager_settings import (
    ManagerSettings,
    NamespaceSettings,
    OwnershipSettings,
    TaskPeriods,
)
from controlplane.core.bundles.load.report_rule import ReportSettings
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.smoothed_node import SmoothingSettings
from controlplane.core.bundles.load.split_rule import SplitSettings
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings
from controlplane.core.bundles.placement.extensible import ExtensiblePlacementSettings
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate, LeastMessageRateSettings
from controlplane.core.bundles.placement.least_resource_usage import (
    LeastResourceUsage,
    LeastResourceUsageSettings,
    LeastStoredUsage,
)
from controlplane.core.bundles.placement.modular import ModularPlacementSettings
from controlplane.core.bundles.placement.round_robin import RoundRobin
from controlplane.core.bundles.placement.shed_checks import ShedCheckSettings
from controlplane.core.bundles.rule_registry import (
    EXTENSIBLE_MANAGER,
    Manager,
    Part,
    Registry,
    Rule,
    RuleKind,
    manager_named,
)
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.score_pairs import AvgShedder, ScoreSettings
from controlplane.core.bundles.shedding.threshold import ThresholdSettings, ThresholdShedder
from controlplane.core.bundles.shedding.transfer import TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings
from controlplane.core.bundles.splitting.algorithms import TrafficSplitSettings
from controlplane.core.bundles.splitting.execution import SplitExecutionSettings
from controlplane.core.bundles.splitting.owner_task import OwnerSplitSettings
from controlplane.errors import ConfigurationError

S = TypeVar("S")

OWN: Final = "controlplane"
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
        assumed: knobs whose values are assumed, because the original's are not published.
    """

    name: str
    description: str
    based_on: str | None = None
    assumed: tuple[str, ...] = ()


PROFILES: Final[Mapping[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(OWN, "Our own policy: the rules of Pulsar 4.2's modular manager without its quirks."),
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
        ),
        Profile(PULSAR_2_MODULAR, "Pulsar 2, modular load manager.", PULSAR_4_2_MODULAR),
    )
}

_IMPLEMENTATIONS: Final = "org.apache.pulsar.broker.loadbalance.impl"
_EXTENSIONS: Final = "org.apache.pulsar.broker.loadbalance.extensions"
_AVERAGE: Final = f"{_IMPLEMENTATIONS}.AvgShedder"
_OVERLOAD: Final = f"{_IMPLEMENTATIONS}.OverloadShedder"
_TRANSFER: Final = f"{_EXTENSIONS}.scheduler.TransferShedder"
_EXTENSIBLE_LEAST_USAGE: Final = f"{_EXTENSIONS}.strategy.LeastResourceUsageWithWeight"

RULES: Final = (
    Rule(
        RuleKind.SHEDDER,
        f"{_IMPLEMENTATIONS}.ThresholdShedder",
        Manager.MODULAR,
        lambda its: ThresholdShedder(its.settings(ThresholdSettings)),
    ),
    Rule(RuleKind.SHEDDER, _OVERLOAD, Manager.MODULAR, lambda its: OverloadShedder(its.settings(OverloadSettings))),
    Rule(
        RuleKind.SHEDDER,
        f"{_IMPLEMENTATIONS}.UniformLoadShedder",
        Manager.MODULAR,
        lambda its: UniformLoadShedder(its.settings(UniformSettings)),
    ),
    Rule(
        RuleKind.SHEDDER,
        _AVERAGE,
        Manager.MODULAR,
        lambda its: AvgShedder(its.settings(ScoreSettings)),
        needs_partner=True,
    ),
    Rule(RuleKind.SHEDDER, _TRANSFER, Manager.EXTENSIBLE, lambda its: TransferShedder(its.settings(TransferSettings))),
    Rule(
        RuleKind.PLACEMENT,
        f"{_IMPLEMENTATIONS}.LeastLongTermMessageRate",
        Manager.MODULAR,
        lambda its: LeastMessageRate(its.settings(LeastMessageRateSettings)),
    ),
    Rule(
        RuleKind.PLACEMENT,
        f"{_IMPLEMENTATIONS}.LeastResourceUsageWithWeight",
        Manager.MODULAR,
        lambda its: LeastResourceUsage(its.settings(LeastResourceUsageSettings)),
    ),
    Rule(
        RuleKind.PLACEMENT, f"{_IMPLEMENTATIONS}.RoundRobinBrokerSelector", Manager.MODULAR, lambda _its: RoundRobin()
    ),
    Rule(
        RuleKind.PLACEMENT,
        _AVERAGE,
        Manager.MODULAR,
        lambda its: AvgShedder(its.settings(ScoreSettings)),
        needs_partner=True,
    ),
    Rule(
        RuleKind.PLACEMENT,
        _EXTENSIBLE_LEAST_USAGE,
        Manager.EXTENSIBLE,
        lambda its: LeastStoredUsage(its.settings(LeastResourceUsageSettings)),
    ),
)
"""Pulsar's rules by name. A part that carries one out replaces its entry by one that can make it."""

PARTS: Final = (
    Part(
        ManagerSettings,
        {
            PULSAR_4_2_EXTENSIBLE: {
                "manager": EXTENSIBLE_MANAGER,
                "shedder": _TRANSFER,
                "placement": _EXTENSIBLE_LEAST_USAGE,
            },
            PULSAR_4_X_AVG: {"shedder": _AVERAGE, "placement": _AVERAGE},
            PULSAR_2_MODULAR: {"shedder": _OVERLOAD},
        },
    ),
    Part(TaskPeriods),
    Part(OwnershipSettings),
    Part(NamespaceSettings),
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
    Part(OverloadSettings, {PULSAR_2_MODULAR: {"unweighted": True, "takes_any_known_bundle": True}}),
    Part(UniformSettings, {PULSAR_4_2_MODULAR: {"counts_in_32_bits": True}}),
    Part(
        ScoreSettings,
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
        {OWN: {"checks_loads": True}, PULSAR_2_MODULAR: {"unweighted": True}},
    ),
    Part(LeastResourceUsageSettings, {OWN: {"checks_loads": True}}),
    Part(
        ModularPlacementSettings,
        {
            OWN: {"checks_loads": True, "skips_names_without_port": False, "manager": None},
            PULSAR_2_MODULAR: {"unweighted": True, "manager": None},
        },
    ),
    Part(ExtensiblePlacementSettings, {OWN: {"skips_names_without_port": False}}),
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

REGISTRY: Final = Registry(RULES, PARTS)

KNOBS_WITHOUT_EFFECT: Final[Mapping[str, object]] = {
    "loadBalancerPlacementStrategy": "leastLoadedServer",
    "loadBalancerBrokerUnderloadedThresholdPercentage": 50,
    "loadBalancerBrokerComfortLoadLevelPercentage": 65,
    "loadBalancerOverrideBrokerNics": (),
    "loadBalancerOverrideBrokerNicSpeedGbps": None,
}
"""Knobs that are accepted with any value: of the simple load manager, which is not offered, and of how a node of Pulsar
measures its network, which is up to each node here. The values are Pulsar's defaults."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A profile with overridden knobs, ready for use.

    Attributes:
        profile: the profile.
        manager: the load manager whose rules it uses.
        shedder_rule, placement_rule: the chosen rules, by name.
        by_class: the settings by their class, in the order of the registry's parts.
        ineffective: the values of :data:`KNOBS_WITHOUT_EFFECT`.
    """

    profile: Profile
    manager: Manager
    shedder_rule: Rule
    placement_rule: Rule
    by_class: Mapping[type, object]
    ineffective: Mapping[str, object] = field(default_factory=dict)

    def settings(self, kind: type[S]) -> S:
        """The settings of a class.

        Raises:
            ConfigurationError: the registry has no such part.
        """
        if kind not in self.by_class:
            message = f"no part of profile {self.profile.name!r} has settings of the class {kind.__name__}"
            raise ConfigurationError(message)
        return cast("S", self.by_class[kind])

    def make(self, rule: Rule) -> object:
        """A new object of a rule under these settings.

        Raises:
            ConfigurationError: nothing carries the rule out.
        """
        if rule.make is None:
            message = f"{rule.kind.value} {rule.short_name!r} is known by name only: the registry cannot make it"
            raise ConfigurationError(message)
        return rule.make(self)

    def knobs(self) -> dict[str, object]:
        """Every knob and its value, those without effect included. Of several values that of the first part counts."""
        values: dict[str, object] = dict(self.ineffective)
        for settings in self.by_class.values():
            for knob, value in values_of_knobs(settings):
                values.setdefault(knob, value)
        return values


def profile_named(name: str) -> Profile:
    """The profile with a name.

    Raises:
        ConfigurationError: there is none.
    """
    if name not in PROFILES:
        message = f"profile {name!r} is unknown; there are {', '.join(PROFILES)}"
        raise ConfigurationError(message)
    return PROFILES[name]


def compose(name: str, knobs: Mapping[str, object] | None = None, registry: Registry = REGISTRY) -> Composition:
    """The settings and rules of a profile.

    Args:
        name: the profile's name.
        knobs: values of single knobs, by Pulsar's names.
        registry: the known rules and settings.

    Raises:
        ConfigurationError: the profile, a knob, a manager or a rule is unknown, the rules do not go together, or a
            settings class refuses a value. The message names it.
    """
    profile, given = profile_named(name), dict(knobs or {})
    by_class = _composed(profile, registry)
    known = KNOBS_WITHOUT_EFFECT.keys() | {knob for each in by_class.values() for knob, _ in values_of_knobs(each)}
    unknown = sorted(given.keys() - known)
    if unknown:
        message = f"unknown knobs: {', '.join(unknown)}"
        raise ConfigurationError(message)
    by_class = {kind: with_knobs(settings, given) for kind, settings in by_class.items()}
    chosen = cast("ManagerSettings", by_class[ManagerSettings])
    manager = manager_named(chosen.manager)
    shedder, placement = registry.pair(chosen.shedder, chosen.placement, manager)
    ineffective = {knob: given.get(knob, default) for knob, default in KNOBS_WITHOUT_EFFECT.items()}
    return Composition(profile, manager, shedder, placement, by_class, ineffective)


def _lineage(profile: Profile) -> list[str]:
    """The profile's name after those that it is based on."""
    before = [] if profile.based_on is None else _lineage(profile_named(profile.based_on))
    return [*before, profile.name]


def _composed(profile: Profile, registry: Registry) -> dict[type, object]:
    parts, by_class = {part.settings: part for part in registry.parts}, dict[type, object]()

    def settings_of(kind: type) -> object:
        if kind not in by_class:
            values = {
                name: value for each in _lineage(profile) for name, value in parts[kind].values.get(each, {}).items()
            }
            by_class[kind] = with_shared(kind(**values))
        return by_class[kind]

    def with_shared(settings: Any) -> object:  # noqa: ANN401 - a value of any settings class
        """The settings with those within them that have a part of their own, such as the weights of resources."""
        within = {each.name: getattr(settings, each.name) for each in fields(settings)}
        shared = {
            name: settings_of(type(value))
            for name, value in within.items()
            if is_dataclass(value) and type(value) in parts
        }
        return replace(settings, **shared)

    for kind in parts:
        settings_of(kind)
    return {kind: by_class[kind] for kind in parts}

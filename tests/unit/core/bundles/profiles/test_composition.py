"""Profiles: what each sets, and what is refused by name."""

import math
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field, fields

import pytest

from controlplane.core.bundles.load.leader_fold import FoldSettings, PreallocationEnd
from controlplane.core.bundles.load.load_order import NearTies
from controlplane.core.bundles.load.report_rule import ReportSettings
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.smoothed_node import SmoothingSettings
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.placement.modular import ModularPlacementSettings
from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.registry import Part, Rule, RuleKind, SettingsSource
from controlplane.core.bundles.profiles.values import (
    CONTROLPLANE,
    KNOBS_WITHOUT_EFFECT,
    PROFILES,
    PULSAR_2_MODULAR,
    PULSAR_4_0_MODULAR,
    PULSAR_4_2_EXTENSIBLE,
    PULSAR_4_2_MODULAR,
    PULSAR_4_X_AVG,
)
from controlplane.core.bundles.settings.allowed import ANY_NUMBER, FINITE, Allowed, KnobRefusedError
from controlplane.core.bundles.settings.knobs import knob, knobs_of, ranges_of_knobs, values_of_knobs
from controlplane.core.bundles.settings.manager_settings import ManagerSettings, NamespaceSettings
from controlplane.core.bundles.settings.managers import MODULAR_MANAGER, Manager
from controlplane.errors import ConfigurationError

SHEDDER = "loadBalancerLoadSheddingStrategy"
PLACEMENT = "loadBalancerLoadPlacementStrategy"


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """Settings of a rule of somebody else, with the weights that all rules share."""

    threshold: float = knob("exampleThreshold", 1.0)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    is_quirky: bool = False


def make_example(source: SettingsSource) -> ExampleSettings:
    """A rule that is its settings."""
    return source.settings(ExampleSettings)


EXAMPLE = REGISTRY.with_rules(Rule(RuleKind.SHEDDER, "example.Shedder", Manager.MODULAR, make_example)).with_parts(
    Part(ExampleSettings, {PULSAR_4_2_MODULAR: {"is_quirky": True}})
)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_composes(name: str) -> None:
    """Each has a class for every part, and rules that go together."""
    composition = compose(name)
    assert composition.by_class.keys() == {part.settings for part in REGISTRY.parts}
    assert composition.profile.description.endswith(".")
    assert composition.shedder_rule.manager is composition.placement_rule.manager is composition.manager


def test_no_knob_is_declared_twice_without_need_nor_with_two_defaults() -> None:
    """A knob that two rules read has one default; but each rule looks for the nodes of its own manager."""
    defaults: dict[str, object] = {}
    for part in REGISTRY.parts:
        for name, value in values_of_knobs(part.settings()):
            assert defaults.setdefault(name, value) == value or name == "loadManagerClassName", name
        declared = [name for name, _ in knobs_of(part.settings)]
        assert len(set(declared)) == len(declared)
    assert not defaults.keys() & KNOBS_WITHOUT_EFFECT.keys()


def test_own_profile_has_the_defaults_and_no_quirk() -> None:
    """The defaults of the settings classes are our own policy, but for what the profile says itself."""
    composition = compose(CONTROLPLANE)
    for part in REGISTRY.parts:
        assert composition.settings(part.settings) == part.settings(**part.values.get(CONTROLPLANE, {}))


def test_profiles_differ_where_the_versions_do() -> None:
    """One by one, those that are not the profile of 4.2."""
    assert compose(PULSAR_4_2_MODULAR).settings(FoldSettings) == FoldSettings(
        samples_unchanged_reports=True,
        samples_implausible_loads=True,
        preallocation_end=PreallocationEnd.REPORTED_OR_NOT_OWNED_BY_LEADER,
    )
    weights = ResourceWeights(keeps_infinite_usage=True)
    assert compose(PULSAR_4_2_MODULAR).settings(ReportSettings).weights == weights
    assert compose(PULSAR_4_2_EXTENSIBLE).settings(SmoothingSettings).weights == weights
    assert compose(PULSAR_4_0_MODULAR).settings(FoldSettings).near_ties is NearTies.THRESHOLD
    assert compose(PULSAR_4_0_MODULAR).settings(FoldSettings).samples_unchanged_reports
    assert compose(PULSAR_4_0_MODULAR).settings(TopBundlesSettings).includes_idle_bundles
    pulsar_2 = compose(PULSAR_2_MODULAR)
    assert pulsar_2.shedder_rule.short_name == "OverloadShedder"
    assert pulsar_2.settings(ReportSettings).compares_unweighted_usage
    assert pulsar_2.settings(FoldSettings) == FoldSettings(
        samples_unchanged_reports=True,
        samples_implausible_loads=True,
        preallocation_end=PreallocationEnd.ANY_REPORTED,
        keeps_unreported_bundles=True,
        near_ties=NearTies.THRESHOLD,
    )
    extensible = compose(PULSAR_4_2_EXTENSIBLE)
    assert (extensible.manager, extensible.shedder_rule.short_name) == (Manager.EXTENSIBLE, "TransferShedder")
    average = compose(PULSAR_4_X_AVG)
    assert average.shedder_rule.class_name == average.placement_rule.class_name
    assert "maxUnloadPercentage" in average.profile.assumed


@pytest.mark.parametrize(
    ("name", "knobs", "message"),
    [
        ("pulsar-9", {}, "profile 'pulsar-9' is unknown; there are controlplane, pulsar-4.2-modular"),
        (CONTROLPLANE, {"loadBalancerTypo": 1}, "unknown knobs: loadBalancerTypo"),
        (
            CONTROLPLANE,
            {SHEDDER: "NoShedder"},
            "shedder 'NoShedder' is unknown; ModularLoadManagerImpl has AvgShedder, Overload",
        ),
        (CONTROLPLANE, {PLACEMENT: "x.LeastLongTermMessageRate"}, "placement 'x.LeastLongTermMessageRate' is unknown"),
        (CONTROLPLANE, {SHEDDER: "TransferShedder"}, "shedder 'TransferShedder' belongs to the other load manager"),
        (CONTROLPLANE, {SHEDDER: "AvgShedder"}, "do not go together: AvgShedder has to be both"),
        (CONTROLPLANE, {PLACEMENT: "AvgShedder"}, "do not go together: AvgShedder has to be both"),
        (PULSAR_4_X_AVG, {SHEDDER: "ThresholdShedder"}, "do not go together"),
        (PULSAR_4_2_EXTENSIBLE, {SHEDDER: "ThresholdShedder"}, "belongs to the other load manager"),
        (
            CONTROLPLANE,
            {"loadManagerClassName": "SimpleLoadManagerImpl"},
            "'SimpleLoadManagerImpl' is unknown or not offered",
        ),
        (CONTROLPLANE, {"loadManagerClassName": "ExtensibleLoadManagerImpl"}, "belongs to the other load manager"),
        (
            CONTROLPLANE,
            {"defaultNamespaceBundleSplitAlgorithm": "halves"},
            "is 'halves', allowed is one of supportedNamespaceBundleSplitAlgorithms: range_equally_divide, ",
        ),
        (
            CONTROLPLANE,
            {"supportedNamespaceBundleSplitAlgorithms": ("range_equally_divide", "halves")},
            "split algorithm 'halves' is unknown; ModularLoadManagerImpl has flow_or_qps_equally_divide, range_",
        ),
        (
            CONTROLPLANE,
            {"supportedNamespaceBundleSplitAlgorithms": ("range_equally_divide",) * 2},
            "split algorithm 'range_equally_divide' is named twice",
        ),
        (CONTROLPLANE, {"nodeFilters": ("Mine",)}, "node filter 'Mine' is unknown; ModularLoadManagerImpl has none"),
        (
            CONTROLPLANE,
            {"loadBalancerSheddingIntervalMinutes": 0},
            "IntervalMinutes is 0, allowed is greater than 0",
        ),
        (CONTROLPLANE, {"loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": 29}, "in flight"),
        (CONTROLPLANE, {"topicBundleAssignmentStrategy": "x.ByRoom"}, "is 'x.ByRoom', allowed is ConsistentHashing"),
        (
            CONTROLPLANE,
            {"loadManagerServiceUnitStateTableViewClassName": "Rows"},
            "allowed is ServiceUnitStateTableViewImpl or Serv",
        ),
        (
            CONTROLPLANE,
            {"loadBalancerServiceUnitTableViewSyncer": "SystemTopicToMetadataStoreSyncer"},
            "a syncer is not offered",
        ),
    ],
)
def test_what_is_unknown_or_contradicts_itself_is_refused_by_name(
    name: str, knobs: dict[str, object], message: str
) -> None:
    """Pulsar ran with another load manager instead, and its operators found out later (#26031)."""
    with pytest.raises(ConfigurationError) as refused:
        compose(name, knobs)
    assert message in str(refused.value)


def test_single_knobs_are_overridden_everywhere() -> None:
    """Also in the settings within others, by full and by short names of rules."""
    knobs = {
        "loadBalancerCPUResourceWeight": 0.5,
        "loadBalancerHistoryResourcePercentage": 0.25,
        "loadBalancerPlacementStrategy": "weightedRandomSelection",
        SHEDDER: "UniformLoadShedder",
        PLACEMENT: "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector",
    }
    composition = compose(PULSAR_4_2_MODULAR, knobs)
    assert composition.settings(ResourceWeights).cpu == composition.settings(SmoothingSettings).weights.cpu == 0.5
    assert composition.settings(SmoothingSettings).history_weight == 0.25
    assert composition.shedder_rule.short_name == "UniformLoadShedder"
    assert composition.placement_rule.short_name == "RoundRobinBrokerSelector"
    assert {name: composition.knobs()[name] for name in knobs} == knobs
    both = compose(CONTROLPLANE, {SHEDDER: "AvgShedder", PLACEMENT: "AvgShedder"})
    assert both.shedder_rule.class_name == both.placement_rule.class_name


def test_rules_and_settings_of_others_plug_in() -> None:
    """A rule in a user's file gets its knobs, its switches by profile, and the shared weights."""
    knobs = {SHEDDER: "example.Shedder", "exampleThreshold": 3.0, "loadBalancerCPUResourceWeight": 2.0}
    composition = compose(PULSAR_4_0_MODULAR, knobs, EXAMPLE)
    made = composition.make(composition.shedder_rule)
    assert made == ExampleSettings(3.0, ResourceWeights(cpu=2.0, keeps_infinite_usage=True), is_quirky=True)
    assert not compose(CONTROLPLANE, {SHEDDER: "Shedder"}, EXAMPLE).settings(ExampleSettings).is_quirky


def test_settings_without_a_part_are_named() -> None:
    """A registry lacks the settings of a rule that it does not know."""
    with pytest.raises(ConfigurationError, match="ExampleSettings"):
        compose(CONTROLPLANE).settings(ExampleSettings)


def test_values_of_a_profile_name_fields_and_profiles_that_exist() -> None:
    """A switch under a wrong name would be on in no profile."""
    for part in REGISTRY.parts:
        names = {each.name for each in fields(part.settings)}
        assert part.values.keys() <= PROFILES.keys()
        for values in part.values.values():
            assert values.keys() <= names
    assert ManagerSettings().is_enabled
    assert OwnershipSettings().tombstone_delay_s == 3_600
    assert NamespaceSettings().bundle_count == 4


def test_our_own_policy_is_what_the_settings_classes_say() -> None:
    """A profile that set values of its own would make every sentence about a default untrue."""
    assert not [part.settings for part in REGISTRY.parts if CONTROLPLANE in part.values]


@pytest.mark.parametrize("name", ["ModularLoadManagerImpl", MODULAR_MANAGER])
def test_the_default_name_of_the_manager_changes_nothing_in_either_form(name: str) -> None:
    """Each configuration of Pulsar has this line."""
    for profile in (CONTROLPLANE, PULSAR_4_2_MODULAR, PULSAR_2_MODULAR):
        given, plain = compose(profile, {"loadManagerClassName": name}), compose(profile)
        for settings in (ManagerSettings, ModularPlacementSettings):
            assert given.settings(settings) == plain.settings(settings)


ABSURD = {
    "defaultNumberOfNamespaceBundles": (0, "1 to 128"),
    "loadBalancerBrokerMaxTopics": (-1, "1 or greater"),
    "loadBalancerBrokerOverloadedThresholdPercentage": (850, "greater than 0, up to 100"),
    "loadBalancerBrokerThresholdShedderPercentage": (850.0, "0 to 100"),
    "loadBalancerReportUpdateMaxIntervalMinutes": (-5, "greater than 0"),
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": (math.inf, "0 or greater"),
    "loadBalancerBrokerLoadTargetStd": (1.5, "0 to 1"),
    "loadBalancerAvgShedderHighThreshold": (101, "0 to 100"),
    "loadBalancerNamespaceBundleMaxSessions": (-2, "-1 or greater"),
}


@pytest.mark.parametrize("knob", ABSURD)
def test_an_absurd_value_is_refused_under_our_own_policy_alone(knob: str) -> None:
    """By the knob's name and with what is allowed. Pulsar takes it, thus its profiles do."""
    value, allowed = ABSURD[knob]
    with pytest.raises(KnobRefusedError, match=re.escape(f"{knob} is {value!r}, allowed is {allowed}")) as refused:
        compose(CONTROLPLANE, {knob: value})
    assert refused.value.knobs == (knob,)
    assert compose(PULSAR_4_2_MODULAR, {knob: value}).knobs()[knob] == value


def test_a_share_below_zero_is_refused_under_every_profile() -> None:
    """No rule can calculate with it."""
    for profile in PROFILES:
        with pytest.raises(KnobRefusedError, match=r"maxUnloadPercentage is -0\.1, allowed is 0"):
            compose(profile, {"maxUnloadPercentage": -0.1})


def test_a_text_where_a_number_belongs_is_refused_by_the_name_of_the_knob() -> None:
    """Not by an error of Python."""
    with pytest.raises(KnobRefusedError, match="minUnloadMessage is 'many', allowed is 0 or greater"):
        compose(PULSAR_4_2_MODULAR, {"minUnloadMessage": "many"})


def test_every_number_has_a_range_which_is_the_same_wherever_the_knob_is_a_field() -> None:
    """All values of all profiles are in it, and what a rule cannot calculate with is never allowed."""
    ranges: dict[str, set[str]] = defaultdict(set)
    for part in REGISTRY.parts:
        for name, allowed, accepted in ranges_of_knobs(part.settings):
            values = [compose(profile).knobs()[name] for profile in PROFILES]
            if isinstance(values[0], bool | str | tuple | frozenset):
                assert allowed is None
                continue
            assert allowed is not None, f"{name} has no range"
            assert all(map(allowed.has, values)), f"{name} has values outside of its range"
            if accepted is not None:
                assert accepted.least <= allowed.least
                assert accepted.greatest >= min(allowed.greatest, sys.float_info.max)
            ranges[name].add(str(allowed))
    assert ranges
    assert {name: texts for name, texts in ranges.items() if len(texts) > 1} == {}


@pytest.mark.parametrize(
    ("allowed", "inside", "outside", "words"),
    [
        (Allowed(0, 1), (0, 0.5, 1), (-0.1, 1.1, math.nan, "1", None), "0 to 1"),
        (Allowed(0, 100, excludes_least=True), (1e-9, 100), (0, -1, math.inf), "greater than 0, up to 100"),
        (Allowed(0, excludes_least=True), (1, math.inf), (0,), "greater than 0"),
        (Allowed(-1), (-1, 0, math.inf), (-2,), "-1 or greater"),
        (FINITE, (0, 1e308), (math.inf, 10**400), "0 or greater"),
        (ANY_NUMBER, (-math.inf, 0), (math.nan,), "any number"),
    ],
)
def test_a_range_says_what_it_has(
    allowed: Allowed, inside: tuple[object, ...], outside: tuple[object, ...], words: str
) -> None:
    """Its bounds belong to it, unless it says otherwise."""
    assert all(map(allowed.has, inside))
    assert not any(map(allowed.has, outside))
    assert str(allowed) == words

"""Profiles: named sets of settings with which the rules for bundles decide like a version of Pulsar, or our own way.

A profile sets every knob and every switch of a quirk. It is composed from the settings classes and rules of a registry,
and single knobs can be overridden. A name that is unknown, and rules that do not go together, are refused; nothing is
chosen in their place (Pulsar replaced such a configuration silently, #26031).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from controlplane.core.bundles.profiles.pulsar_rules import PULSAR_RULES
from controlplane.core.bundles.profiles.registry import Registry, Rule, RuleKind
from controlplane.core.bundles.profiles.split_rules import SPLIT_RULES
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT, PARTS, PROFILES, Profile
from controlplane.core.bundles.settings.allowed import KnobRefusedError, naming
from controlplane.core.bundles.settings.knobs import refuse_unreasonable, values_of_knobs, with_knobs
from controlplane.core.bundles.settings.manager_settings import ManagerSettings, NamespaceSettings
from controlplane.core.bundles.settings.managers import Manager, manager_named
from controlplane.errors import ConfigurationError

S = TypeVar("S")

_MANAGER: Final = "loadManagerClassName"
_SHEDDER: Final = "loadBalancerLoadSheddingStrategy"
_PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
_FILTERS: Final = "nodeFilters"
_SPLIT_ALGORITHMS: Final = "supportedNamespaceBundleSplitAlgorithms"
REGISTRY: Final = Registry((*PULSAR_RULES, *SPLIT_RULES), PARTS)
"""Pulsar's rules, and the settings that profiles set."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A profile with overridden knobs, ready for use.

    Attributes:
        profile: the profile.
        manager: the load manager whose rules it uses.
        shedder_rule, placement_rule: the chosen rules, by name.
        by_class: the settings by their class, in the order of the registry's parts.
        ineffective: the values of :data:`KNOBS_WITHOUT_EFFECT`.
        filter_rules: users' own filters of nodes, in the order in which they are asked.
        split_rules: the split algorithms that a split may name.
    """

    profile: Profile
    manager: Manager
    shedder_rule: Rule
    placement_rule: Rule
    by_class: Mapping[type, object]
    ineffective: Mapping[str, object] = field(default_factory=dict)
    filter_rules: tuple[Rule, ...] = ()
    split_rules: tuple[Rule, ...] = ()

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
            ConfigurationError: the rule refuses them.
        """
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
        raise KnobRefusedError(f"unknown knobs: {', '.join(unknown)}", *unknown)
    with naming(_MANAGER):
        if _MANAGER in given:
            given[_MANAGER] = manager_named(str(given[_MANAGER])).value
    if profile.refuses_unreasonable_values:
        for kind in by_class:
            refuse_unreasonable(kind, given)
    by_class = {kind: with_knobs(settings, given) for kind, settings in by_class.items()}
    chosen = cast("ManagerSettings", by_class[ManagerSettings])
    manager = manager_named(chosen.manager)
    with naming(_SHEDDER, _PLACEMENT):
        shedder, placement = registry.pair(chosen.shedder, chosen.placement, manager)
    ineffective = {knob: given.get(knob, default) for knob, default in KNOBS_WITHOUT_EFFECT.items()}
    with naming(_FILTERS):
        filters = registry.listed(RuleKind.FILTER, chosen.node_filters, manager)
    namespaces = cast("NamespaceSettings", by_class[NamespaceSettings])
    with naming(_SPLIT_ALGORITHMS):
        splits = registry.listed(RuleKind.SPLIT_ALGORITHM, namespaces.split_algorithms, manager)
    return Composition(profile, manager, shedder, placement, by_class, ineffective, filters, splits)


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

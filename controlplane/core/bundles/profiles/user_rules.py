"""Rules of users: how one is declared, what makes it unusable, and how it comes into the registry."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from controlplane.core.bundles.profiles.registry import Part, Registry, Rule, RuleKind, SettingsSource
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT
from controlplane.core.bundles.settings.knobs import knobs_of, values_of_knobs
from controlplane.core.bundles.settings.managers import Manager
from controlplane.errors import ConfigurationError

MEMBERS: Final[Mapping[RuleKind, Mapping[str, tuple[str, ...] | None]]] = {
    RuleKind.SHEDDER: {
        "first_memory": None,
        "shed": ("view", "memory"),
        "retain": ("memory", "active"),
        "after_unload": ("memory", "choice", "outcome", "now_ms"),
    },
    RuleKind.PLACEMENT: {
        "first_memory": None,
        "select": ("bundle", "candidates", "view", "memory"),
        "after_pick": ("bundle", "node_id", "view", "memory"),
        "retain": ("memory", "active"),
    },
    RuleKind.FILTER: {"keep": ("bundle", "candidates", "context")},
    RuleKind.SPLIT_ALGORITHM: {"choose": ("request",)},
}
"""By kind, the members of its protocol besides ``name``: a method with its arguments, or an attribute (None)."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class BundleRule:
    """A rule of a user.

    Attributes:
        kind: what it decides.
        rule: its class. It is made with the settings as only argument; without settings, with none.
        settings: its settings class: a frozen dataclass whose fields have defaults. A field made with ``knob`` can be
            set by that knob's name; a field whose type is a settings class of this package has the values of the
            profile. None for a rule without settings.
        manager: the load manager whose view it takes; None for a filter that serves both. A split algorithm always
            serves both.
    """

    kind: RuleKind
    rule: type
    settings: type | None = None
    manager: Manager | None = Manager.MODULAR


def rule_problems(declared: object) -> list[str]:
    """The respects in which an object is not a usable rule; none if it is one."""
    if not isinstance(declared, BundleRule):
        shown = declared.__name__ if isinstance(declared, type) else type(declared).__name__
        return [f"{shown} is not a BundleRule; write BundleRule(RuleKind.SHEDDER, {shown})"]
    of_fields = _field_problems(declared.kind, declared.rule, declared.manager)
    if of_fields:
        return of_fields
    if declared.manager is None and declared.kind in {RuleKind.SHEDDER, RuleKind.PLACEMENT}:
        return [f"{declared.rule.__name__}: a {declared.kind.value} takes the view of one load manager; name it"]
    of_settings = [] if declared.settings is None else _settings_problems(declared.settings)
    if of_settings:
        return of_settings
    try:
        made = _made(declared, None if declared.settings is None else declared.settings())
    except Exception as error:  # noqa: BLE001 - whatever a user's class raises is told to the user
        return [f"{declared.rule.__name__} cannot be made: {type(error).__name__}: {error}"]
    return list(_member_problems(made, declared.kind))


def with_user_rule(registry: Registry, declared: BundleRule, origins: Mapping[object, str]) -> Registry:
    """The registry with a user's rule, which has no problems.

    Args:
        registry: the known rules and settings.
        declared: the rule.
        origins: where a rule (by kind and short name), a settings class or a knob comes from, if it does not come from
            this package; for messages.

    Raises:
        ConfigurationError: its name or a knob is taken. Nothing is replaced.
    """
    name = name_of(declared)
    short = name.rpartition(".")[2]
    for rule in registry.rules:
        if rule.kind is declared.kind and short == rule.short_name:
            origin = origins.get((rule.kind, rule.short_name), "a built-in one")
            raise ConfigurationError(f"the name {name!r} is that of {origin} already; use another")
    manager = None if declared.kind is RuleKind.SPLIT_ALGORITHM else declared.manager
    registry = registry.with_rules(Rule(declared.kind, name, manager, lambda its: _composed(declared, name, its)))
    if declared.settings is None or declared.settings in {part.settings for part in registry.parts}:
        return registry
    owners = _knob_owners(registry)
    for knob in declared_knobs(declared.settings()):
        if knob in owners:
            origin = origins.get(knob, owners[knob])
            raise ConfigurationError(f"{declared.settings.__name__}: the knob {knob!r} is that of {origin} already")
    return registry.with_parts(Part(declared.settings))


def name_of(declared: BundleRule) -> str:
    """The name by which knobs choose a rule that has no problems."""
    name: str = _made(declared, None if declared.settings is None else declared.settings()).name
    return name


def declared_knobs(settings: object) -> Iterator[str]:
    """The knobs of settings and of settings within them that are classes of the same module."""
    yield from (knob for knob, _ in knobs_of(settings))
    for each in fields(settings):  # type: ignore[arg-type]  # every settings class is a dataclass
        value = getattr(settings, each.name)
        if is_dataclass(value) and type(value).__module__ == type(settings).__module__:
            yield from declared_knobs(value)


def _made(declared: BundleRule, settings: object) -> Any:  # noqa: ANN401 - a class of a user
    return declared.rule() if declared.settings is None else declared.rule(settings)


def _composed(declared: BundleRule, name: str, its: SettingsSource) -> object:
    settings = None if declared.settings is None else its.settings(declared.settings)
    try:
        return _made(declared, settings)
    except ConfigurationError:
        raise
    except Exception as error:
        values = ", ".join(f"{knob}={value}" for knob, value in values_of_knobs(settings)) if declared.settings else ""
        with_values = f" with {values}" if values else ""
        message = f"{declared.kind.value} {name!r} cannot be made{with_values}: {type(error).__name__}: {error}"
        raise ConfigurationError(message) from error


def _knob_owners(registry: Registry) -> dict[str, str]:
    owners = dict.fromkeys(KNOBS_WITHOUT_EFFECT, "one without effect")
    for part in registry.parts:
        for knob in declared_knobs(part.settings()):
            owners.setdefault(knob, part.settings.__name__)
    return owners


def _field_problems(kind: object, rule: object, manager: object) -> list[str]:
    if not isinstance(kind, RuleKind):
        return [f"its kind is {kind!r}, not one of RuleKind"]
    if not isinstance(rule, type):
        return [f"its rule is {rule!r}, not a class"]
    if manager is not None and not isinstance(manager, Manager):
        return [f"the manager of {rule.__name__} is {manager!r}, not one of Manager"]
    return []


def _settings_problems(settings: object) -> list[str]:
    if not isinstance(settings, type):
        return [f"its settings are {settings!r}, not a class"]
    name = settings.__name__
    if not is_dataclass(settings) or not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return [f"its settings class {name} is not a frozen dataclass; write @dataclass(frozen=True) above it"]
    try:
        made = settings()
    except Exception as error:  # noqa: BLE001 - whatever a user's class raises is told to the user
        return [f"its settings class {name} has to have a default for each field: {type(error).__name__}: {error}"]
    knobs = list(declared_knobs(made))
    return [
        f"its settings class {name} has the knob {knob!r} twice" for knob in sorted({*knobs}) if knobs.count(knob) > 1
    ]


def _member_problems(made: object, kind: RuleKind) -> Iterator[str]:
    owner = type(made).__name__
    name = getattr(made, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{owner}.name is {name!r}; a name has letters, digits, '_', '-', and dots between them"
    for member, arguments in MEMBERS[kind].items():
        if not hasattr(made, member):
            shown = member if arguments is None else f"{member}({', '.join(arguments)})"
            yield f"{owner} has no {shown}, which a {kind.value} has to have"
        elif arguments is not None and not _takes(getattr(made, member), len(arguments)):
            yield f"{owner}.{member} has to take ({', '.join(arguments)})"


def _takes(method: object, count: int) -> bool:
    try:
        inspect.signature(method).bind(*range(count))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True

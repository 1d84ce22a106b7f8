"""Profiles of the rules for bundles, as plain data: their rules, and every knob and switch with its value."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final, TypeVar

from controlplane.core.bundles.profiles.composition import Composition, compose
from controlplane.core.bundles.profiles.registry import Registry, Rule, RuleKind
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT, PROFILES, UNREAD_KNOBS
from controlplane.core.bundles.settings.knobs import knobs_of, ranges_of_knobs, values_of_knobs
from controlplane.core.bundles.settings.manager_settings import NamespaceSettings
from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import ConfigurationError
from controlplane.inspection.records import Record

S = TypeVar("S")
NO_EFFECT: Final = "no effect here"
NOT_CHOSEN: Final = "of a rule that is not chosen"
ASSUMED: Final = "assumed"
GIVEN: Final = "set"
EXECUTED_BY: Final = "nothing that runs today"


def profile_rows() -> list[Record]:
    """A row for each profile, with the rules that it chooses."""
    return [
        {"name": name, "based_on": profile.based_on, **_rules(compose(name)), "description": profile.description}
        for name, profile in PROFILES.items()
    ]


def profile_record(composition: Composition, registry: Registry, given: Iterable[str] = ()) -> Record:
    """A composition: its rules, its knobs and its switches.

    ``knobs`` and ``switches`` have a record for each: its name, its value, ``base_value``, which is that of the profile
    that this one is based on (without one: the default of our own policy), whether the two differ, and notes. A switch
    is a field that is no knob of Pulsar; its name is that of the settings class and of the field. Both are sorted by
    name.

    Args:
        composition: a profile, possibly with overridden knobs.
        registry: the rules and settings that it was composed from.
        given: the overridden knobs.
    """
    profile = composition.profile
    before = _base_values(profile.based_on, registry)
    idle, overridden = _idle_knobs(composition, registry), frozenset(given)
    notes = {
        ASSUMED: frozenset(profile.assumed) - overridden,
        NO_EFFECT: KNOBS_WITHOUT_EFFECT.keys() | UNREAD_KNOBS,
        NOT_CHOSEN: idle,
        GIVEN: overridden,
        **_outside(composition, registry),
    }
    return {
        "profile": profile.name,
        "description": profile.description,
        "executed_by": EXECUTED_BY,
        "based_on": profile.based_on,
        **_rules(composition),
        "knobs": list(_compared(composition.knobs(), before[0], notes)),
        "switches": list(_compared(_switches(composition.by_class), before[1], {})),
    }


def _rules(composition: Composition) -> Record:
    return {
        "manager": composition.manager.value.rpartition(".")[2],
        RuleKind.SHEDDER.value: composition.shedder_rule.short_name,
        RuleKind.PLACEMENT.value: composition.placement_rule.short_name,
        "node_filters": [rule.short_name for rule in composition.filter_rules],
        "split_algorithm": composition.settings(NamespaceSettings).split_algorithm,
    }


def _base_values(base: str | None, registry: Registry) -> tuple[dict[str, object], dict[str, object]]:
    """The knobs and the switches of a profile; without one, those of the defaults."""
    if base is not None:
        composition = compose(base, registry=registry)
        return composition.knobs(), _switches(composition.by_class)
    knobs: dict[str, object] = dict(KNOBS_WITHOUT_EFFECT)
    defaults = {part.settings: part.settings() for part in registry.parts}
    for settings in defaults.values():
        for knob, value in values_of_knobs(settings):
            knobs.setdefault(knob, value)
    return knobs, _switches(defaults)


def _switches(by_class: Mapping[type, object]) -> dict[str, object]:
    return {
        f"{kind.__name__}.{each.name}": getattr(settings, each.name)
        for kind, settings in by_class.items()
        for each in fields(kind)
        if each.name not in {name for _, name in knobs_of(kind)} and not is_dataclass(getattr(settings, each.name))
    }


def _compared(
    values: Mapping[str, object], before: Mapping[str, object], notes: Mapping[str, Iterable[str]]
) -> Iterable[Record]:
    for name, value in sorted(values.items(), key=lambda each: each[0].lower()):
        yield {
            "name": name,
            "value": _plain(value),
            "base_value": _plain(before[name]),
            "differs": value != before[name],
            "notes": [note for note, names in notes.items() if name in names],
        }


def _outside(composition: Composition, registry: Registry) -> dict[str, set[str]]:
    """By a note on a range, the knobs with values that our own policy would refuse."""
    notes, values = defaultdict[str, set[str]](set), composition.knobs()
    for part in registry.parts:
        for name, allowed, _ in ranges_of_knobs(part.settings):
            if allowed is not None and not allowed.has(values[name]):
                notes[f"outside of {allowed}"].add(name)
    return dict(notes)


def _idle_knobs(composition: Composition, registry: Registry) -> frozenset[str]:
    """The knobs that only rules read which are not chosen."""
    chosen = {*_settings_read(composition, _chosen(composition))}
    others = {*_settings_read(composition, registry.rules)} - chosen
    used = {knob for kind in composition.by_class if kind not in others for knob, _ in knobs_of(kind)}
    return frozenset(knob for kind in others for knob, _ in knobs_of(kind) if knob not in used)


def _chosen(composition: Composition) -> tuple[Rule, ...]:
    rules = (composition.shedder_rule, composition.placement_rule)
    return (*rules, *composition.filter_rules, *composition.split_rules)


class _Reader:
    """Gives out settings and keeps a list of their classes."""

    def __init__(self, composition: Composition) -> None:
        self.read: list[type] = []
        self._composition = composition

    def settings(self, kind: type[S]) -> S:
        """As a composition does."""
        self.read.append(kind)
        return self._composition.settings(kind)


def _settings_read(composition: Composition, rules: Iterable[Rule]) -> list[type]:
    reader = _Reader(composition)
    for rule in rules:
        with suppress(ConfigurationError):  # a rule that is not chosen may refuse its settings
            rule.make(reader)
    return reader.read


def _plain(value: object) -> CanonicalValue:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return list[CanonicalValue](sorted(str(each) for each in value))
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)

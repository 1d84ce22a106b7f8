"""The registry of rules for bundles: which names a configuration may use, and what stands behind them.

A profile composes settings and rules from a registry. A rule of another package is added with
:meth:`Registry.with_rules`, its settings with :meth:`Registry.with_parts`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol, TypeVar

from controlplane.core.bundles.settings.managers import Manager
from controlplane.errors import ConfigurationError

S = TypeVar("S")


class RuleKind(Enum):
    """What a rule decides."""

    SHEDDER = "shedder"
    PLACEMENT = "placement"
    FILTER = "node filter"
    SPLIT_ALGORITHM = "split algorithm"


class SettingsSource(Protocol):
    """Gives out the composed settings, to the function that makes a rule."""

    def settings(self, kind: type[S]) -> S:
        """The settings of a class."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a configuration may name.

    Attributes:
        kind: what it decides.
        class_name: its full name, that of Pulsar's class for Pulsar's rules. The part after the last dot is enough
            where it is unambiguous.
        manager: the manager whose view of loads it takes; None for a rule that serves both.
        make: makes the rule from the composed settings.
        needs_partner: it shares its memory with the rule of the other kind and the same name: both have to be chosen.
    """

    kind: RuleKind
    class_name: str
    manager: Manager | None
    make: Callable[[SettingsSource], object]
    needs_partner: bool = False

    @property
    def short_name(self) -> str:
        """The name without its package."""
        return self.class_name.rpartition(".")[2]

    def serves(self, manager: Manager) -> bool:
        """Whether the rule decides under a manager."""
        return self.manager in (None, manager)


@dataclass(frozen=True, slots=True)
class Part:
    """A settings class that profiles set.

    Attributes:
        settings: the class. Its defaults are those of our own policy.
        values: by profile, the fields that differ from the defaults or from the profile that it is based on.
    """

    settings: type
    values: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Registry:
    """The known rules and settings."""

    rules: tuple[Rule, ...] = ()
    parts: tuple[Part, ...] = ()

    def with_rules(self, *rules: Rule) -> "Registry":
        """The registry with more rules."""
        return replace(self, rules=(*self.rules, *rules))

    def with_parts(self, *parts: Part) -> "Registry":
        """The registry with more settings classes."""
        return replace(self, parts=(*self.parts, *parts))

    def rule(self, kind: RuleKind, name: str, manager: Manager) -> Rule:
        """The rule with a full or short name.

        Raises:
            ConfigurationError: no rule of the manager has the name. Nothing is chosen in its place.
        """
        named = [rule for rule in self.rules if rule.kind is kind and name in {rule.class_name, rule.short_name}]
        fitting = [rule for rule in named if rule.serves(manager)]
        if fitting:
            return fitting[0]
        known = ", ".join(sorted(rule.short_name for rule in self.rules if rule.kind is kind and rule.serves(manager)))
        problem = "belongs to the other load manager" if named else "is unknown"
        message = f"{kind.value} {name!r} {problem}; {manager.short_name} has {known or 'none'}"
        raise ConfigurationError(message)

    def listed(self, kind: RuleKind, names: Iterable[str], manager: Manager) -> tuple[Rule, ...]:
        """The rules with these names, in their order.

        Raises:
            ConfigurationError: a name is unknown, or names the same rule as an earlier one.
        """
        rules: list[Rule] = []
        for name in names:
            rule = self.rule(kind, name, manager)
            if rule in rules:
                raise ConfigurationError(f"{kind.value} {name!r} is named twice")
            rules.append(rule)
        return tuple(rules)

    def pair(self, shedder: str, placement: str, manager: Manager) -> tuple[Rule, Rule]:
        """The rules for shedding and for placement.

        Raises:
            ConfigurationError: a name is unknown, or the rules do not go together.
        """
        rules = self.rule(RuleKind.SHEDDER, shedder, manager), self.rule(RuleKind.PLACEMENT, placement, manager)
        if any(rule.needs_partner for rule in rules) and rules[0].class_name != rules[1].class_name:
            message = (
                f"shedder {shedder!r} and placement {placement!r} do not go together: "
                f"{next(rule.short_name for rule in rules if rule.needs_partner)} has to be both"
            )
            raise ConfigurationError(message)
        return rules

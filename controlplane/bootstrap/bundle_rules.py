"""Loads rules for bundles from users' own files, beside the built-in ones."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from controlplane.bootstrap.user_files import run_file
from controlplane.core.bundles.profiles.composition import REGISTRY
from controlplane.core.bundles.profiles.registry import Registry
from controlplane.core.bundles.profiles.user_rules import (
    BundleRule,
    declared_knobs,
    name_of,
    rule_problems,
    with_user_rule,
)
from controlplane.errors import ConfigurationError

ATTRIBUTE: Final = "BUNDLE_RULES"
"""The name of a file's tuple of :class:`BundleRule`."""


def load_bundle_rules(paths: Iterable[Path]) -> Registry:
    """The built-in rules and settings for bundles, and those of the files.

    Each file is run once, as a module of its own, in this process: trust it as you trust this package.

    Raises:
        ConfigurationError: a file cannot be run, has no ``BUNDLE_RULES``, lists there something that is no usable rule,
            or uses a name or a knob that is taken. The message names the file, the class and what is wrong.
    """
    registry, origins = REGISTRY, dict[object, str]()
    for path in paths:
        for place, declared in enumerate(_rules_of(path)):
            problems = rule_problems(declared)
            where = f"{path}: {ATTRIBUTE}[{place}]"
            if problems:
                raise ConfigurationError(f"{where}: {'; '.join(problems)}")
            try:
                registry = with_user_rule(registry, declared, origins)
            except ConfigurationError as error:
                raise ConfigurationError(f"{where}: {declared.rule.__name__}: {error}") from error
            origin = f"{declared.rule.__name__} in {path}"
            origins[declared.kind, name_of(declared).rpartition(".")[2]] = origin
            if declared.settings is not None:
                origins.update(
                    dict.fromkeys(declared_knobs(declared.settings()), f"{declared.settings.__name__} in {path}")
                )
    return registry


def _rules_of(path: Path) -> Sequence[BundleRule]:
    listed = getattr(run_file(path, "bundle_rule_file"), ATTRIBUTE, None)
    if not isinstance(listed, tuple | list) or not listed:
        raise ConfigurationError(
            f"{path}: it has no rules for bundles; end it with {ATTRIBUTE} = (BundleRule(RuleKind.SHEDDER, MyShedder),)"
        )
    return listed

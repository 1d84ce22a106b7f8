"""The settings of the rules for bundles as the code declares them: values by profile, readers and meanings."""

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.registry import Rule
from controlplane.core.bundles.profiles.values import CONTROLPLANE, PROFILES
from controlplane.core.bundles.settings.knobs import knobs_of

BUNDLES: Final = Path(__file__).resolve().parents[2] / "controlplane" / "core" / "bundles"

Values = Mapping[str, object]
"""A value for each profile."""


class Use(NamedTuple):
    """A field of a settings class.

    Attributes:
        settings: the class.
        field: the field's name.
        values: its value under each profile.
        readers: the rules, or the files, that read it.
        meaning: its sentence in the class's docstring.
    """

    settings: type
    field: str
    values: Values
    readers: tuple[str, ...]
    meaning: str


def knob_uses() -> dict[str, list[Use]]:
    """The fields of each knob that has any, in the order of the registry."""
    uses: dict[str, list[Use]] = defaultdict(list)
    for part in REGISTRY.parts:
        for knob, name in knobs_of(part.settings):
            uses[knob].append(use_of(part.settings, name))
    return dict(uses)


def use_of(settings: type, name: str) -> Use:
    """The field of a settings class."""
    if name not in _meanings(settings):
        raise ValueError(f"the docstring of {settings.__name__} says nothing of {name}")
    values = {profile: getattr(composed(profile)[settings], name) for profile in PROFILES}
    return Use(settings, name, values, _readers(settings, name), _meanings(settings)[name])


@cache
def composed(profile: str) -> Mapping[type, object]:
    """The settings of a profile by their class."""
    return compose(profile).by_class


def _readers(settings: type, name: str) -> tuple[str, ...]:
    """The rules that take the settings; without any, the files that read the field, first that of the class."""
    classes = [each for each in settings.__mro__ if each is not object]
    names = {each.__name__ for each in classes}
    files = {file for file, source in _sources().items() if names & source.names and name in source.attributes}
    homes = {_file_name(Path(inspect.getfile(each))) for each in classes}
    return (_rules_by_settings().get(settings) or tuple(sorted(files & homes or files))) if files else ()


class Source(NamedTuple):
    """The names that a file mentions and the attributes that it reads, those in checks of settings excluded."""

    names: frozenset[str]
    attributes: frozenset[str]


@cache
def _sources() -> dict[str, Source]:
    return {_file_name(path): _source(ast.parse(path.read_text(encoding="utf-8"))) for path in BUNDLES.rglob("*.py")}


def _file_name(path: Path) -> str:
    return path.relative_to(BUNDLES).as_posix()


def _source(tree: ast.Module) -> Source:
    checks = {
        id(within)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__post_init__"
        for within in ast.walk(node)
    }
    nodes = [node for node in ast.walk(tree) if id(node) not in checks]
    defined = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    return Source(frozenset(defined | named), frozenset(read))


class _Asked:
    """Composed settings that note who asks for what."""

    def __init__(self) -> None:
        self.settings_classes: list[type] = []

    def settings(self, kind: type) -> object:
        """The settings of our own policy."""
        self.settings_classes.append(kind)
        return composed(CONTROLPLANE)[kind]


@cache
def _rules_by_settings() -> dict[type, tuple[str, ...]]:
    """The rules of the registry by the class whose settings they are made with."""
    rules: dict[type, dict[str, None]] = defaultdict(dict)
    for rule in REGISTRY.rules:
        for kind in settings_of(rule):
            rules[kind][rule.short_name] = None
    return {kind: tuple(names) for kind, names in rules.items()}


def settings_of(rule: Rule) -> list[type]:
    """The settings classes that a rule is made with."""
    asked = _Asked()
    if rule.make is not None:
        rule.make(asked)  # type: ignore[arg-type]  # it gives any class, not the one that is asked for
    return asked.settings_classes


_ATTRIBUTE: Final = re.compile(r"^(?P<names>\w+(?:, \w+)*): (?P<text>.*)$")


@cache
def _meanings(settings: type) -> dict[str, str]:
    """The sentences on the fields of a class, those of the classes that it extends included."""
    found: dict[str, str] = {}
    for each in reversed(settings.__mro__):
        found |= dict(_attributes(each))
    return found


def _attributes(settings: type) -> Iterator[tuple[str, str]]:
    """The entries of a docstring's part ``Attributes``; one may be of several names."""
    doc = inspect.cleandoc(settings.__doc__ or "")
    _, _, part = doc.partition("\nAttributes:\n")
    entries: list[str] = []
    for line in inspect.cleandoc(part.partition("\n\n")[0]).splitlines():
        if line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)
    for entry in entries:
        found = _ATTRIBUTE.match(entry)
        if found is None:
            raise ValueError(f"the docstring of {settings.__name__} has an entry without a name: {entry!r}")
        for name in found["names"].split(", "):
            yield name, _markdown(found["text"])


def _markdown(text: str) -> str:
    """A sentence of a docstring as one of a page."""
    text = re.sub(r":\w+:`~?([^`]+)`", lambda role: f"`{role[1].rpartition('.')[2]}`", text)
    text = text.replace("``", "`").replace("|", r"\|")
    return text[:1].upper() + text[1:]

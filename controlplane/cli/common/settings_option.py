"""Options that set single fields of a frozen settings object by name: ``--policy slot_count=1024``."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from controlplane.cli.common.suggestions import suggestion
from controlplane.core.values.canonical import CanonicalValue, from_canonical, parsed_text, to_canonical
from controlplane.errors import ConfigurationError, InvalidInputError

T = TypeVar("T")


def parse_settings(option: str, defaults: T, settings: Sequence[str]) -> T:
    """The settings object with some fields replaced.

    Args:
        option: the option's name, for messages.
        defaults: a dataclass, possibly of dataclasses.
        settings: each ``name=value``; a field of a nested dataclass is named with a dot, as ``split.max_topics``, and
            so is an entry of a map of texts.

    Raises:
        ConfigurationError: an unknown name, a value of another type, or settings that contradict each other.
    """
    # Converted once, so that a field of type float whose default is a whole number accepts fractions.
    plain = to_canonical(from_canonical(type(defaults), to_canonical(defaults)))
    known = dict(_leaves(plain, ""))
    for setting in settings:
        name, equals, text = setting.partition("=")
        path, dot, entry = name.partition(".")
        if equals and dot and entry and known.get(path) == {}:
            _put(plain, [path, entry], text)
        elif equals and known.get(name, {}) != {}:
            _put(plain, name.split("."), _parsed(option, name, text, known[name]))
        else:
            names = [f"{name}.NAME" if value == {} else name for name, value in known.items()]
            similar = suggestion(name, names) if equals else ""
            if similar:
                raise ConfigurationError(f"{option} {setting!r}: there is no {name!r}: {similar}")
            raise ConfigurationError(f"{option} {setting!r}: write NAME=VALUE with a name of {', '.join(names)}")
    try:
        return from_canonical(type(defaults), plain)
    except InvalidInputError as error:
        detail = error.detail.removeprefix(f"{type(defaults).__name__}.")
        raise ConfigurationError(f"{option}: {detail}") from error


def _parsed(option: str, name: str, text: str, known: CanonicalValue) -> CanonicalValue:
    try:
        return parsed_text(name, text, known)
    except InvalidInputError as error:
        raise ConfigurationError(f"{option}: {error.detail}") from error


def _leaves(plain: CanonicalValue, prefix: str) -> Iterator[tuple[str, CanonicalValue]]:
    """Every field by its dotted name. An empty map is one field, which accepts entries of any name."""
    if not isinstance(plain, dict) or not plain:
        yield prefix, plain
        return
    for name, value in plain.items():
        yield from _leaves(value, f"{prefix}.{name}" if prefix else name)


def _put(plain: CanonicalValue, path: Sequence[str], value: CanonicalValue) -> None:
    for name in path[:-1]:
        plain = plain[name] if isinstance(plain, dict) else None
    if isinstance(plain, dict):
        plain[path[-1]] = value

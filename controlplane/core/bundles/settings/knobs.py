"""Settings that correspond to Pulsar's: each field of a settings class names the knob of ``broker.conf`` that it is.

A settings class is a frozen dataclass, one for each rule. The profiles, the operators' page and the conformance tests
read the names from here, so a knob is declared once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, TypeVar

from controlplane.errors import ConfigurationError

S = TypeVar("S")
_KNOB = "pulsar_knob"


def knob(name: str, default: Any) -> Any:  # noqa: ANN401 - the type is that of the field
    """A field of a settings class with the default of Pulsar's knob ``name``."""
    return field(default=default, metadata={_KNOB: name})


def knobs_of(kind: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - a settings class, or one of its values
    """The pairs of knob and field of a settings class, in the order of the fields."""
    return ((each.metadata[_KNOB], each.name) for each in fields(kind) if _KNOB in each.metadata)


def values_of_knobs(settings: object) -> Iterator[tuple[str, object]]:
    """The pairs of knob and value of settings and of the settings within them."""
    for each in fields(settings):  # type: ignore[arg-type]  # every settings class is a dataclass
        value = getattr(settings, each.name)
        if _KNOB in each.metadata:
            yield each.metadata[_KNOB], value
        elif is_dataclass(value):
            yield from values_of_knobs(value)


def with_knobs(settings: S, values: Mapping[str, object]) -> S:
    """The settings, and the settings within them, with the values of those knobs that they have.

    Other knobs belong to other rules.

    Raises:
        ConfigurationError: the settings class refuses a value.
    """
    given: dict[str, object] = {name: values[pulsar] for pulsar, name in knobs_of(settings) if pulsar in values}
    for each in fields(settings):  # type: ignore[arg-type]  # every settings class is a dataclass
        value = getattr(settings, each.name)
        if is_dataclass(value):
            given[each.name] = with_knobs(value, values)
    try:
        return replace(settings, **given)  # type: ignore[type-var]  # every settings class is a dataclass
    except (TypeError, ValueError) as error:
        message = f"{type(settings).__name__} does not take {given}: {error}"
        raise ConfigurationError(message) from error


def require_known(name: str, package: str, known: tuple[str, ...], what: str) -> None:
    """Refuse the name of a class, with or without its package, that is not one of the known ones.

    Raises:
        ConfigurationError: it is not.
    """
    if name not in {*known, *(f"{package}.{each}" for each in known)}:
        message = f"{what} {name!r} is unknown or not offered: take {' or '.join(known)}"
        raise ConfigurationError(message)

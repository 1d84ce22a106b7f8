"""Settings that correspond to Pulsar's: each field of a settings class names the knob of ``broker.conf`` that it is.

A settings class is a frozen dataclass, one for each rule. The profiles, the operators' page and the conformance tests
read the names from here, so a knob is declared once.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, TypeVar

from controlplane.core.bundles.settings.allowed import Allowed, KnobRefusedError
from controlplane.errors import ConfigurationError

S = TypeVar("S")
_KNOB = "pulsar_knob"
_ALLOWED = "allowed"
_ACCEPTED = "accepted"


def knob(name: str, default: Any, allowed: Allowed | None = None, *, accepted: Allowed | None = None) -> Any:  # noqa: ANN401 - the type is that of the field
    """A field of a settings class that is a knob of Pulsar.

    Args:
        name: Pulsar's name.
        default: the value under our own policy.
        allowed: the range of values under our own policy, which :func:`refuse_unreasonable` checks; None for a knob
            that is no number.
        accepted: the range of values with which the rule can calculate at all. It holds under every profile, thus it is
            as wide as Pulsar's; :func:`refuse_unusable` checks it. None for any value.
    """
    return field(default=default, metadata={_KNOB: name, _ALLOWED: allowed, _ACCEPTED: accepted})


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


def ranges_of_knobs(kind: Any) -> Iterator[tuple[str, Allowed | None, Allowed | None]]:  # noqa: ANN401 - a settings class, or one of its values
    """For each knob of a settings class: its name, its range under our own policy, and its range under any profile."""
    return (
        (each.metadata[_KNOB], each.metadata[_ALLOWED], each.metadata[_ACCEPTED])
        for each in fields(kind)
        if _KNOB in each.metadata
    )


def refuse_unusable(settings: object) -> None:
    """Refuse a value with which the rule of the settings cannot calculate. Settings classes call it when they are made.

    Raises:
        ConfigurationError: a value is outside the range ``accepted`` of its knob. The message names the knob.
    """
    for each in fields(settings):  # type: ignore[arg-type]  # every settings class is a dataclass
        accepted: Allowed | None = each.metadata.get(_ACCEPTED)
        value = getattr(settings, each.name)
        if accepted is not None and not accepted.has(value):
            raise _outside(each.metadata[_KNOB], value, accepted)


def refuse_unreasonable(kind: type, values: Mapping[str, object]) -> None:
    """Refuse values of knobs with which the rule of a settings class would act always or never.

    Args:
        kind: the class.
        values: by knob, the value; knobs of other classes are passed over.

    Raises:
        ConfigurationError: a value is infinite, or outside the range ``allowed`` of its knob. The message names the
            knob.
    """
    for name, allowed, _ in ranges_of_knobs(kind):
        if name in values and allowed is not None and not (allowed.has(values[name]) and values[name] != math.inf):
            raise _outside(name, values[name], allowed)


def _outside(name: str, value: object, allowed: Allowed) -> KnobRefusedError:
    return KnobRefusedError(f"{name} is {value!r:.80}, allowed is {allowed}", name)


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
    given_knobs = [pulsar for pulsar, _ in knobs_of(settings) if pulsar in values]
    try:
        return replace(settings, **given)  # type: ignore[type-var]  # every settings class is a dataclass
    except KnobRefusedError:
        raise
    except (ConfigurationError, TypeError, ValueError) as error:
        shown = ", ".join(f"{each}={values[each]!s:.80}" for each in given_knobs)
        raise KnobRefusedError(f"{shown}: {error}" if shown else str(error), *given_knobs) from error


def require_known(knob_name: str, name: str, package: str, known: tuple[str, ...]) -> None:
    """Refuse the name of a class, with or without its package, that is not one of the known ones.

    Raises:
        ConfigurationError: it is not.
    """
    if name not in {*known, *(f"{package}.{each}" for each in known)}:
        raise KnobRefusedError(f"{knob_name} is {name!r}, allowed is {' or '.join(known)}", knob_name)

"""Values of knobs that are given as text, as operators write them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, get_type_hints

from controlplane.core.bundles.settings.allowed import KnobRefusedError
from controlplane.core.bundles.settings.knobs import knobs_of

_SWITCH: Final = {"true": True, "yes": True, "false": False, "no": False}


def knob_values(texts: Mapping[str, str], kinds: Mapping[str, Any]) -> dict[str, object]:
    """The values of knobs, by the types of their fields; a knob of unknown type keeps its text.

    A list is written with commas, a switch as true or false (also yes or no), and no value as an empty text where a
    field allows None.

    Args:
        texts: by knob, the text.
        kinds: by knob, the type of the field, as :func:`knob_kinds` answers it.

    Raises:
        ConfigurationError: a text is not a value of the type. The message names the knob.
    """
    return {knob: _value(knob, text, kinds.get(knob, str)) for knob, text in texts.items()}


def knob_kinds(settings: object) -> Iterator[tuple[str, Any]]:
    """The pairs of knob and field type of settings and of the settings within them."""
    hints = get_type_hints(type(settings))
    yield from ((knob, hints[name]) for knob, name in knobs_of(settings))
    for each in fields(settings):  # type: ignore[arg-type]  # every settings class is a dataclass
        value = getattr(settings, each.name)
        if is_dataclass(value):
            yield from knob_kinds(value)


def may_be_empty(kind: Any) -> bool:  # noqa: ANN401 - any annotation of a field
    """Whether an empty text is a value of a type: no value, or an empty list."""
    return kind not in (bool, int, float, str)


def _value(knob: str, text: str, kind: Any) -> object:  # noqa: ANN401 - any annotation of a field
    wanted = {bool: "true or false", int: "a whole number", float: "a finite number"}
    try:
        if kind is bool:
            return _SWITCH[text.lower()]
        if kind is int:
            return int(text)
        if kind is float:
            return _finite(text)
    except (KeyError, ValueError):
        raise KnobRefusedError(f"{knob} is {text!r:.80}, allowed is {wanted[kind]}", knob) from None
    if kind is str:
        return text
    if type(None) in getattr(kind, "__args__", ()):
        return text or None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number

"""Comparison of answers in the recorded form: numbers by value, with the texts NaN and Infinity for what JSON lacks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXTS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number(value: float | str) -> float:
    """A recorded number, which may be a text."""
    return float(TEXTS[value]) if isinstance(value, str) else value


def same(found: Any, expected: Any) -> bool:  # noqa: ANN401 - anything that JSON holds
    """Whether two answers are equal: 3 and 3.0 are, and so are two values that are not a number."""
    return first_difference(found, expected) is None


def first_difference(found: Any, expected: Any, place: str = "answer") -> str | None:  # noqa: ANN401 - as above
    """Where an answer first differs, with what was expected there and what was found; None if it does not."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if expected.keys() != found.keys():
            lacking, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
            return f"{place}: expected {lacking or 'nothing'} besides, got {extra or 'nothing'} besides"
        pairs = [(f"{place}[{key!r}]", found[key], expected[key]) for key in expected]
    elif _is_list(expected) and _is_list(found) and len(expected) == len(found):
        pairs = [(f"{place}[{at}]", *both) for at, both in enumerate(zip(found, expected, strict=True))]
    else:
        return None if _same_value(found, expected) else f"{place}: expected {expected!r:.300}, got {found!r:.300}"
    return next((wrong for at, one, other in pairs if (wrong := first_difference(one, other, at)) is not None), None)


def _is_list(value: Any) -> bool:  # noqa: ANN401 - as above
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same_value(found: Any, expected: Any) -> bool:  # noqa: ANN401 - as above
    if isinstance(expected, str) and expected in TEXTS and isinstance(found, float):
        expected = TEXTS[expected]
    if isinstance(expected, bool) or isinstance(found, bool):
        return type(expected) is type(found) and bool(expected == found)
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return expected == found or (math.isnan(expected) and math.isnan(found))
    if isinstance(expected, str) or isinstance(found, str):
        return bool(expected == found)
    return expected is None and found is None

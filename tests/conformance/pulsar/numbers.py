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
    if isinstance(expected, str) and expected in TEXTS and isinstance(found, float):
        expected = TEXTS[expected]
    if isinstance(expected, bool) or isinstance(found, bool):
        return type(expected) is type(found) and bool(expected == found)
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return expected == found or (math.isnan(expected) and math.isnan(found))
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return expected.keys() == found.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, str) or isinstance(found, str):
        return bool(expected == found)
    if isinstance(expected, Sequence) and isinstance(found, Sequence):
        return len(expected) == len(found) and all(map(same, found, expected))
    return bool(expected is None and found is None)

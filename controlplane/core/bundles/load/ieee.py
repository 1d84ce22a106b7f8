"""Arithmetic of floating-point numbers without exceptions, and of 32-bit integers, as Pulsar's language defines them.

Python raises where IEEE 754 answers with infinity or with a value that is not a number (NaN), compares NaN as unordered
when it sorts, and has integers without an upper bound. A rule that has to decide like the original on any input uses
these functions.
"""

import math
from typing import Final

GREATEST_INT32: Final = 2**31 - 1
_LEAST_INT32: Final = -(2**31)
_INT32_VALUES: Final = 2**32


def divide(dividend: float, divisor: float) -> float:
    """The quotient; by zero it is infinite, or NaN if the dividend is 0 or NaN."""
    if divisor != 0:
        return dividend / divisor
    if dividend == 0 or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def square_root(value: float) -> float:
    """The square root; NaN for a negative number."""
    return math.sqrt(value) if value >= 0 else math.nan


def greater(first: float, second: float) -> float:
    """The greater of two numbers; NaN if one of them is NaN."""
    return math.nan if math.isnan(first) or math.isnan(second) else max(first, second)


def total_order(value: float) -> tuple[bool, float, float]:
    """A key that sorts every number: NaN is above infinity, and -0.0 is below 0.0 (Java's Double.compare)."""
    if value == 0:
        return False, 0.0, math.copysign(1.0, value)
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, 0.0)


def to_int32(value: float) -> int:
    """The value without its fraction, limited to 32 bits; 0 for NaN (Java's cast of a double to int)."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return GREATEST_INT32 if value > 0 else _LEAST_INT32
    return max(_LEAST_INT32, min(int(value), GREATEST_INT32))


def wrap_int32(value: int) -> int:
    """The value modulo 2^32, from -2^31 to 2^31 - 1: what is left of a sum in 32 bits."""
    return (value - _LEAST_INT32) % _INT32_VALUES + _LEAST_INT32

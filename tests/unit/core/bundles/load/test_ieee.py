"""Arithmetic of floating-point numbers without exceptions, and of 32-bit integers."""

import math

from controlplane.core.bundles.load.ieee import divide, greater, square_root, to_int32, total_order, wrap_int32


def test_arithmetic_without_exceptions() -> None:
    """Where Python raises or leaves the order open, the answer is that of IEEE 754 and of 32-bit integers."""
    assert [divide(1, 0.0), divide(-1, 0.0), divide(1, -0.0)] == [math.inf, -math.inf, -math.inf]
    assert all(map(math.isnan, (divide(0, 0), divide(math.nan, 0), square_root(-1), square_root(math.nan))))
    assert all(map(math.isnan, (greater(math.nan, 1), greater(1, math.nan))))
    assert [to_int32(value) for value in (2.9, -2.9, math.nan, 1e99, -1e99, math.inf, -math.inf)] == [
        2,
        -2,
        0,
        2**31 - 1,
        -(2**31),
        2**31 - 1,
        -(2**31),
    ]
    assert sorted([math.nan, 0.0, math.inf, -0.0, -1.0], key=total_order)[:4] == [-1.0, -0.0, 0.0, math.inf]
    assert math.copysign(1, min([0.0, -0.0], key=total_order)) == -1
    assert [wrap_int32(value) for value in (2**31 - 1, 2**31, -(2**31) - 1)] == [2**31 - 1, -(2**31), 2**31 - 1]

"""Bugs in ``controlplane/core/bundles/load/ieee.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_ieee.py",)

BUGS: Final = (
    Bug(
        "nothing divided by nothing is nothing",
        "return math.nan\n    return math.copysign(math.inf, dividend)",
        "return 0.0\n    return math.copysign(math.inf, dividend)",
        ("uniform_shed", "avg_shed", "usage"),
        _TESTS,
    ),
    Bug(
        "the greater of two numbers is the one that is a number",
        "math.nan if math.isnan(first) or math.isnan(second) else max(first, second)",
        "max(first, second)",
        ("uniform_shed", "avg_shed", "transfer_shed", "usage"),
        _TESTS,
    ),
    Bug(
        "what is not a number is sorted below all numbers",
        "return (True, 0.0, 0.0) if math.isnan(value)",
        "return (False, -math.inf, 0.0) if math.isnan(value)",
        ("threshold_shed", "overload_shed", "uniform_shed", "avg_shed"),
        _TESTS,
    ),
    Bug(
        "a sum in 32 bits stops at the greatest number",
        "return (value - _LEAST_INT32) % _INT32_VALUES + _LEAST_INT32",
        "return max(_LEAST_INT32, min(value, GREATEST_INT32))",
        ("uniform_shed",),
        _TESTS,
    ),
)

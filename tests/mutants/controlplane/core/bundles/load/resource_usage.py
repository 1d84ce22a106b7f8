"""Bugs in ``controlplane/core/bundles/load/resource_usage.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_measured_node.py",)

BUGS: Final = (
    Bug(
        "percentages are doubles instead of 32-bit floats",
        "return ctypes.c_float(value).value",
        "return value",
        ("usage",),
    ),
    Bug(
        "a share becomes a percentage without being rounded to 32 bits",
        "return _to_float32(share * 100) if",
        "return share * 100 if",
        ("usage",),
    ),
    Bug(
        "a negative limit counts",
        "if resource.limit > 0 else 0.0",
        "if resource.limit != 0 else 0.0",
        ("usage",),
    ),
    Bug(
        "heap memory counts in the modular usage",
        "return _greatest(_weighted(node, weights)) / 100",
        "return _greatest((*_weighted(node, weights), percent_usage(node.memory))) / 100",
        ("usage",),
    ),
    Bug(
        "a misspelt weight is never read",
        "return self.bandwidth_in if self.bandwidth_in != 1 else self.former_bandwidth_in",
        "return self.bandwidth_in",
        ("usage",),
    ),
    Bug(
        "the modular maximum is divided in 64 bits",
        "return _to_float32(_greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100)",
        "return _greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100",
        ("usage",),
    ),
    Bug(
        "the extensible maximum is divided in 32 bits",
        "    return _greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100",
        "    return _to_float32(_greatest(_percentages(node, keeps_infinite=weights.keeps_infinite_usage)) / 100)",
        ("broker_load_ema",),
    ),
    Bug(
        "a usage that is not a number hides the greater ones",
        "greatest = max(greatest, value)",
        "greatest = value if value != value else max(greatest, value)",
        ("usage",),
        _TESTS,
    ),
)

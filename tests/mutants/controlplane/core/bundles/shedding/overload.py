"""Bugs in ``controlplane/core/bundles/shedding/overload.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_threshold.py",)

BUGS: Final = (
    Bug(
        "overload: a node at the threshold is not overloaded",
        "if usage < threshold:",
        "if usage <= threshold:",
        ("overload_shed",),
        _TESTS,
    ),
    Bug(
        "overload: no margin beyond the excess",
        "(usage - threshold + _MARGIN)",
        "(usage - threshold)",
        ("overload_shed",),
    ),
    Bug(
        "overload: a sole bundle is unloaded",
        "if bundle_count <= 1:",
        "if bundle_count < 1:",
        ("overload_shed",),
    ),
)

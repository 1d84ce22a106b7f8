"""Bugs in ``controlplane/core/bundles/shedding/recent.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/leading/test_unloading.py",)

BUGS: Final = (
    Bug(
        "a bundle's rest ends a moment early",
        "if at_ms >= limit_ms",
        "if at_ms > limit_ms",
        (),
        _TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/placement/fixed_owner.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_extensible.py",)

BUGS: Final = (
    Bug(
        "a monitor's namespace belongs to a node that is gone",
        "if monitor is not None and monitor[1] in registered else None",
        "if monitor is not None else None",
        (),
        _TESTS,
    ),
)

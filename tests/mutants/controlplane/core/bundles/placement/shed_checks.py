"""Bugs in ``controlplane/core/bundles/placement/shed_checks.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_modular.py",)

BUGS: Final = (
    Bug(
        "shedding: a bundle leaves for its own node",
        "elif placement.node_id == current:",
        "elif False:",
        (),
        _TESTS,
    ),
    Bug(
        "shedding: a bundle leaves although policies allow no other node",
        "if self.settings.asks_policies and",
        "if False and",
        (),
        _TESTS,
    ),
)

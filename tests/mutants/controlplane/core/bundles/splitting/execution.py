"""Bugs in ``controlplane/core/bundles/splitting/execution.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/splitting/test_execution.py",)

BUGS: Final = (
    Bug(
        "parts are unloaded if one of both policies agrees",
        "(consent.isolation and consent.anti_affinity)",
        "(consent.isolation or consent.anti_affinity)",
        (),
        _TESTS,
    ),
    Bug(
        "parts are unloaded against the setting",
        "settings.unloads_children and agreed",
        "agreed",
        (),
        _TESTS,
    ),
    Bug(
        "a vanished bundle is split",
        "if not boundaries.has(bundle):",
        "if False:",
        (),
        _TESTS,
    ),
    Bug(
        "a bundle keeps its averages if no position is found",
        "return self.cause in (NoSplitCause.NO_POSITION, NoSplitCause.REFUSED)",
        "return False",
        (),
        _TESTS,
    ),
)

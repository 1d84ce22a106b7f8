"""Bugs in ``controlplane/core/bundles/load/plausible.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_exclusions.py",)
_BOUND_TESTS: Final = (*_TESTS, "unit/core/bundles/load/test_leader_fold.py")

BUGS: Final = (
    Bug(
        "a figure that is not a number is plausible",
        "    if 0 <= value <= greatest:",
        "    if not (value < 0 or value > greatest):",
        (),
        _BOUND_TESTS,
    ),
    Bug(
        "the shown bound of a figure that is too great is the least one",
        "greatest if value > greatest else 0.0",
        "0.0",
        (),
        _BOUND_TESTS,
    ),
    Bug(
        "a usage without a limit counts",
        "    if resource.limit <= 0:\n        return None\n",
        "",
        (),
        _TESTS,
    ),
    Bug(
        "a bundle's long-term average is not looked at",
        " or implausible_load(averages.long_term.load)",
        "",
        (),
        _TESTS,
    ),
    Bug(
        "only the processor of a node is looked at",
        "        if wrong is not None:\n            return wrong\n",
        "        return wrong\n",
        (),
        _TESTS,
    ),
)

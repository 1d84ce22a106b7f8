"""Bugs in ``controlplane/core/bundles/leading/unloading.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/leading/test_unloading.py",)

BUGS: Final = (
    Bug(
        "the placement of each unload begins anew",
        "        memory = checked[-1].check.memory\n",
        "",
        (),
        _TESTS,
    ),
)

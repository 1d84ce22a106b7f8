"""Bugs in ``controlplane/core/values/draws.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/values/test_draws.py",)

BUGS: Final = (
    Bug(
        "a random number of 1 is taken",
        "if not 0 <= draw < 1:",
        "if not 0 <= draw <= 1:",
        (),
        _TESTS,
    ),
)

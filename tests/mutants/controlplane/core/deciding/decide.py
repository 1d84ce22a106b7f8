"""Bugs in ``controlplane/core/deciding/decide.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "what a deposed leader took for no news is lost",
        "if sealed is None and judged:",
        "if False:",
        tests=("unit/core/deciding/test_deposed_leader.py",),
    ),
)

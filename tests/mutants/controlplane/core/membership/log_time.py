"""Bugs in ``controlplane/core/membership/log_time.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a tick of the far future is remembered for good",
        "if remembered and remembered[-1].seq != seq:",
        "if False:",
        tests=("unit/core/membership/test_forged_ticks.py",),
    ),
)

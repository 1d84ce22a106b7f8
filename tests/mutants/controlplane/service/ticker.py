"""Bugs in ``controlplane/service/ticker.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "ticks pile up for a partition that takes none",
        "if self._unanswered[number] < self._unanswered_at_most:",
        "if True:",
        tests=("unit/service/test_ticker.py",),
    ),
)

"""Bugs in ``controlplane/service/table_watch.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/service/test_table_watch.py",)

BUGS: Final = (
    Bug(
        "a topic that is made again has to reach the offsets of the former one",
        "has other offsets.\n        self._barrier = NO_BARRIER",
        "has other offsets.",
        tests=_TESTS,
    ),
)

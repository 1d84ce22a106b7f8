"""Bugs in ``controlplane/inspection/auditing.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("properties/test_audit.py",)

BUGS: Final = (
    Bug(
        "an end before the positions of a decision is taken for the end of the inputs",
        "return max(self._next[place], 0 if end is None else end.offset) < upto",
        "return end is None and self._next[place] < upto",
        tests=_TESTS,
    ),
)

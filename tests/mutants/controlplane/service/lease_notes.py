"""Bugs in ``controlplane/service/lease_notes.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("simulation/test_named_bounds.py",)

BUGS: Final = (
    Bug(
        "a contender notes its acknowledgements every 9 s",
        "now_ms - self._noted_at_ms < NOTED_EVERY_MS",
        "now_ms - self._noted_at_ms < 9 * NOTED_EVERY_MS",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/node/slot_calls.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/node/test_slot_calls.py",)

BUGS: Final = (
    Bug(
        "a service that stores nothing by slots is waited for as if it copied data",
        "if not self._stores_by_slot:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "slots are ready although their service has yet to copy them",
        "if not self._stores_by_slot:",
        "if True:",
        tests=("unit/node/test_agent.py",),
    ),
)

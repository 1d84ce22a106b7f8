"""Bugs in ``controlplane/core/deciding/heartbeat_validation.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/test_decide.py",)

BUGS: Final = (
    Bug(
        "heartbeats of another process keep a node alive",
        "if refusal.reason == ANOTHER_PROCESS and",
        "if False and",
        tests=_TESTS,
    ),
    Bug(
        "heartbeats of another process hide those of the one that was admitted",
        "last = heard[member].of_process(node.process_id)",
        "last = None",
        tests=_TESTS,
    ),
)

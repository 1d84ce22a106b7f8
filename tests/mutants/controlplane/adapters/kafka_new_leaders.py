"""Bugs in ``controlplane/adapters/kafka_new_leaders.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_kafka_new_leaders.py",)

BUGS: Final = (
    Bug(
        "a client asks for leaders without a pause",
        "now_s - self._asked_at_s >= ASKED_EVERY_S",
        "True",
        tests=_TESTS,
    ),
    Bug(
        "a client asks for leaders for good",
        "if now_s - self._lost_at_s > ASKED_FOR_S:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "a client does not ask for leaders when a connection is lost",
        "self._lost_at_s = self._now_s()",
        "pass",
        tests=_TESTS,
    ),
)

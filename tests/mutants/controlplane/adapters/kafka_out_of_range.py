"""Bugs in ``controlplane/adapters/kafka_out_of_range.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_kafka_out_of_range.py",)

BUGS: Final = (
    Bug(
        "an offset that one broker lacks is taken for lost at once",
        "if now_s - since_s >= LIMIT_S:",
        "if True:",
        tests=_TESTS,
    ),
    Bug(
        "an offset that every broker lacks is asked for without end",
        "if now_s - since_s >= LIMIT_S:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "the client that believes a former leader is kept",
        "        cause, self._replacement = self._replacement[1], None",
        "        cause = None",
        tests=_TESTS,
    ),
    Bug(
        "a client is replaced without a pause where an offset is lacking",
        "self._replacement = now_s + _PAUSE_S, cause",
        "self._replacement = now_s, cause",
        tests=_TESTS,
    ),
    Bug(
        "the time for which an offset is lacking goes on although it was read",
        "        self._since_s.pop(place, None)",
        "        pass",
        tests=_TESTS,
    ),
)

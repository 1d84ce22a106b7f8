"""Bugs in ``controlplane/core/election/leading.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/election/test_leading.py",)
_MISSED: Final = ("unit/core/election/test_missed_partitions.py",)

BUGS: Final = (
    Bug(
        "a leader steps down although Kafka acknowledges no contender either",
        "not (is_behind_contender or stood_still)",
        "False",
        tests=_TESTS,
    ),
    Bug(
        "a leader stays although Kafka acknowledges a contender",
        "not (is_behind_contender or stood_still)",
        "not stood_still",
        tests=_TESTS,
    ),
    Bug(
        "two controllers that lose a partition within the same seconds are told apart",
        "or own_ms - other_ms <= ASKED_APART_MS",
        "",
        tests=_MISSED,
    ),
    Bug(
        "a contender's note counts only if it is younger than an answer",
        "<= ANSWERED_WITHIN_MS + self._lease_ms",
        "<= ANSWERED_WITHIN_MS",
        tests=_MISSED,
    ),
    Bug(
        "a contender's note counts for good",
        "return contender_unanswered_ms <= ANSWERED_WITHIN_MS + self._lease_ms",
        "return True",
        tests=_MISSED,
    ),
    Bug(
        "a controller is preferred that has not reached every partition yet",
        "event.has_answers and event.longest_unanswered_ms <= ANSWERED_WITHIN_MS",
        "event.longest_unanswered_ms <= ANSWERED_WITHIN_MS",
        tests=_MISSED,
    ),
    Bug(
        "a controller is preferred that does not reach a partition",
        "event.has_answers and event.longest_unanswered_ms <= ANSWERED_WITHIN_MS",
        "event.has_answers",
        tests=_MISSED,
    ),
    Bug(
        "a contender's acknowledgements have to be 9 s later than a leader's",
        "CLEARLY_LATER_MS: Final = 1_000",
        "CLEARLY_LATER_MS: Final = 9_000",
        tests=("simulation/test_named_bounds.py",),
    ),
)

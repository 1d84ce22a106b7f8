"""Bugs in ``controlplane/core/election/leading.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/election/test_leading.py",)

BUGS: Final = (
    Bug(
        "a leader steps down although Kafka acknowledges no contender either",
        "not (is_outpaced or stood_still)",
        "False",
        tests=_TESTS,
    ),
    Bug(
        "a leader stays although Kafka acknowledges a contender",
        "not (is_outpaced or stood_still)",
        "not stood_still",
        tests=_TESTS,
    ),
    Bug(
        "a contender's acknowledgements have to be 9 s later than a leader's",
        "_CLEARLY_LATER_MS: Final = 1_000",
        "_CLEARLY_LATER_MS: Final = 9_000",
        tests=("simulation/test_named_bounds.py",),
    ),
)

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
)

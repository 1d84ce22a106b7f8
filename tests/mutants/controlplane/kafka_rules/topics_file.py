"""Bugs in ``controlplane/kafka_rules/topics_file.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/kafka_rules/test_topics_file.py",)

BUGS: Final = (
    Bug(
        "a topic that needs every one of its copies is not mentioned",
        "int(insync) < actual.replication:",
        "int(insync) <= actual.replication:",
        tests=_TESTS,
    ),
)

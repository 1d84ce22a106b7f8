"""Bugs in ``controlplane/adapters/kafka_topic_inspector.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_kafka_topic_inspector.py",)

BUGS: Final = (
    Bug(
        "a broker that may be dead is asked for settings",
        "sender if sender in metadata.brokers else min(metadata.brokers)",
        "min(metadata.brokers)",
        tests=_TESTS,
    ),
    Bug(
        "a broker that shows no others makes every topic look as if it were missing",
        "if not metadata.brokers:",
        "if False:",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/adapters/kafka_topic_inspector.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a broker that may be dead is asked for its settings",
        "sender if sender in metadata.brokers else min(metadata.brokers)",
        "min(metadata.brokers)",
        tests=("unit/adapters/test_kafka_topic_inspector.py",),
    ),
)

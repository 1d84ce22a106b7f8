"""Bugs in ``controlplane/adapters/kafka_stall_detector.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_kafka_stall_detector.py",)

BUGS: Final = (
    Bug(
        "a client whose brokers answer it is replaced as soon as one whose brokers do not",
        "LONGEST_STALL_LIMIT_S if client_answered else 0.0",
        "0.0",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/adapters/kafka_transaction_timeout.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/adapters/test_transaction_timeout.py",)

BUGS: Final = (
    Bug(
        "a controller that starts while brokers are away takes Kafka for a single broker",
        "max(len(shown.brokers), *copies, 0)",
        "len(shown.brokers)",
        tests=_TESTS,
    ),
    Bug(
        "a transaction may stay open for a moment only, although Kafka shows several brokers",
        "max(len(shown.brokers), *copies, 0)",
        "max(*copies, 1, 0)",
        tests=_TESTS,
    ),
)

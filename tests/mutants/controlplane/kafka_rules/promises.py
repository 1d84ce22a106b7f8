"""Bugs in ``controlplane/kafka_rules/promises.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/kafka_rules/test_promises.py",)

BUGS: Final = (
    Bug(
        "one copy of Kafka's transactions is enough",
        "if actual.replication < copies:",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "Kafka's transactions may be led by a copy that was not in sync",
        'if actual.settings.get(_UNCLEAN, "false") != "false":',
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "what a platform fixes for its brokers is not known",
        "actual_ms = int(value) if value.isdigit() else fixed.get(name)",
        "actual_ms = int(value) if value.isdigit() else None",
        tests=_TESTS,
    ),
)

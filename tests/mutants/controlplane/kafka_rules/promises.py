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
        'SettingSpec("unclean.leader.election.enable", "false", Rule.EXACTLY, 0, why),',
        "",
        tests=_TESTS,
    ),
    Bug(
        "a setting of Kafka's own topics that is not shown counts as kept",
        "        if value is None:\n            unknown.append(",
        "        if value is None:\n            str(",
        tests=_TESTS,
    ),
    Bug(
        "what a platform fixes for its brokers is not known",
        "actual_ms = int(value) if value.isdigit() else fixed.get(name)",
        "actual_ms = int(value) if value.isdigit() else None",
        tests=_TESTS,
    ),
)

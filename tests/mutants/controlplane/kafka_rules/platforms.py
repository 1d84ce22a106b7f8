"""Bugs in ``controlplane/kafka_rules/platforms.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/kafka_rules/test_promises.py",)

BUGS: Final = (
    Bug(
        "every platform lets every setting of a topic be set",
        "return self.topic_settings is None or setting in self.topic_settings",
        "return True",
        tests=_TESTS,
    ),
    Bug(
        "a setting that can be set at creation only comes with a command that Kafka refuses",
        "if setting in self.at_creation:",
        "if False:",
        tests=_TESTS,
    ),
)

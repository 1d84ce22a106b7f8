"""Bugs in ``controlplane/adapters/kafka_topic_creation.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("embedded/test_few_settings.py",)

BUGS: Final = (
    Bug(
        "a topic is created without a setting on which a promise rests",
        "if error is not None and not setting.keeps(own):",
        "if False:",
        tests=_TESTS,
    ),
    Bug(
        "settings that cannot be set are not left out",
        "refused[unfit[name].name][setting] = error",
        "pass",
        tests=_TESTS,
    ),
)

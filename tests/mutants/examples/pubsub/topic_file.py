"""Bugs in ``examples/pubsub/topic_file.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("examples/test_pubsub_topic_file.py",)

BUGS: Final = (
    Bug(
        "a record that was cut off takes the next one with it",
        "self._is_torn = True\n",
        "self._is_torn = False\n",
        tests=_TESTS,
    ),
    Bug(
        "what a stale owner appends counts",
        "if token < self._greatest_token:\n            return",
        "if False:\n            return",
        tests=_TESTS,
    ),
)

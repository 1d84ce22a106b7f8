"""Bugs in ``controlplane/core/bundles/placement/java_expressions.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_isolation.py",)

BUGS: Final = (
    Bug(
        "an intersection of classes is taken for characters",
        'if expression.startswith("&&", position):',
        "if False:",
        (),
        _TESTS,
    ),
    Bug(
        "the first bracket of a class ends it",
        'if character == "]" and position > class_begins:',
        'if character == "]":',
        (),
        _TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/placement/transfer_checks.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_transfer_checks.py",)

BUGS: Final = (
    Bug(
        "transfer: a filter that fails allows every node",
        "return None if any(step.failure is not None for step in steps) else",
        "return",
        (),
        _TESTS,
    ),
    Bug(
        "transfer: a group counts for nothing",
        " or group_of(namespace, rules.groups) is not None",
        "",
        (),
        _TESTS,
    ),
)

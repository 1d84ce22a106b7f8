"""Bugs in ``controlplane/core/bundles/ownership_channel/states.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_table.py",)

BUGS: Final = (
    Bug(
        "a free bundle's record cannot be followed by its initial state",
        "OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING, OwnershipState.INIT}),",
        "OwnershipState.FREE: frozenset({OwnershipState.ASSIGNING}),",
        ("transitions",),
        _TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/ownership_channel/lookup.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_lookup.py",)

BUGS: Final = (
    Bug(
        "the owner of a bundle that is split is its destination",
        "node_id = record.source if state is OwnershipState.SPLITTING else record.destination",
        "node_id = record.destination",
        (),
        _TESTS,
    ),
    Bug(
        "an unregistered node checks owners",
        "if goes_elsewhere or not asker.is_registered:",
        "if goes_elsewhere:",
        (),
        _TESTS,
    ),
    Bug(
        "a bundle on its way elsewhere makes a look-up wait",
        "and node_id != asker.node_id",
        "and node_id is None",
        (),
        _TESTS,
    ),
    Bug(
        "a refused record answers a waiting look-up with no owner",
        "case OwnershipState.INIT | OwnershipState.FREE if was_taken:",
        "case OwnershipState.INIT | OwnershipState.FREE:",
        (),
        _TESTS,
    ),
)

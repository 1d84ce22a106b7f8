"""Bugs in ``controlplane/core/deciding/bundles/bundle_round.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py",)

BUGS: Final = (
    Bug(
        "parts of a node that drains stay with it",
        "        self.relieve(child.bundle_id for child in children)",
        "        pass",
        tests=_TESTS,
    ),
    Bug(
        "an order that led elsewhere is done",
        "if order.destination in (None, owner):",
        "if True:",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/core/deciding/bundles/hand_off.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py",)

BUGS: Final = (
    Bug(
        "a new process owns under the token of the former one",
        "elif holder.node_id in renewed and bundle.ownership_state in _OWNED:",
        "elif False:",
        tests=_TESTS,
    ),
    Bug(
        "the death of an owner that releases gives the bundle to another node than the next owner",
        "chosen = wanted if work.may_own(wanted) else work.placement.choose()",
        "chosen = work.placement.choose()",
        tests=_TESTS,
    ),
    Bug(
        "the death of an owner forgets to which node the bundle is ordered",
        "return None if order is None else order.destination",
        "return None",
        tests=("unit/core/deciding/bundles/test_next_owners.py",),
    ),
)

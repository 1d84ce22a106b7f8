"""Bugs in ``controlplane/core/bundles/placement/picks.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_avg_shedder.py",)

BUGS: Final = (
    Bug(
        "a strategy is not told which of its nodes was picked",
        "        memory = strategy.after_pick(bundle, node_id, view, memory)\n",
        "        pass\n",
        (),
        _TESTS,
    ),
)

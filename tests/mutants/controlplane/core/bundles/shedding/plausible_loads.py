"""Bugs in ``controlplane/core/bundles/shedding/plausible_loads.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_exclusions.py", "unit/core/bundles/profiles/test_chosen_rules.py")

BUGS: Final = (
    Bug(
        "the rule sees the loads that cannot be true",
        "self.shedder.shed(seen, memory)",
        "self.shedder.shed(view, memory)",
        (),
        _TESTS,
    ),
    Bug(
        "what was left out is not shown",
        "skips=(*_skips(implausible), *shedding.skips)",
        "skips=shedding.skips",
        (),
        _TESTS,
    ),
)

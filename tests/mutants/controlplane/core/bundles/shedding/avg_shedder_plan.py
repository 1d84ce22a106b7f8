"""Bugs in ``controlplane/core/bundles/shedding/avg_shedder_plan.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_avg_shedder.py",)

BUGS: Final = (
    Bug(
        "avg: a plan by averages outlives them",
        "bundles.get(planned.bundle_id, planned.averages) == planned.averages",
        "True",
        ("avg_shed",),
        _TESTS,
    ),
    Bug(
        "avg: a plan by name outlives its attempt",
        "if bundle_id in plan else self",
        "if False else self",
        (),
        _TESTS,
    ),
)

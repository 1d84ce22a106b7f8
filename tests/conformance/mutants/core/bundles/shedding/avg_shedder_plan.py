"""Bugs in ``controlplane/core/bundles/shedding/avg_shedder_plan.py``."""

from typing import Final

from tests.conformance.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_avg_shedder.py",)

BUGS: Final = (
    Bug(
        "avg: a plan by averages outlives them",
        "bundles.get(planned.bundle_id, key) == key",
        "True",
        ("avg_shed",),
        _TESTS,
    ),
)

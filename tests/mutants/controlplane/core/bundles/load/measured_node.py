"""Bugs in ``controlplane/core/bundles/load/measured_node.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "every bundle of a measurement is a gain",
        "(each for each in by_id if each not in before)),\n        bundle_losses",
        "by_id),\n        bundle_losses",
        ("local_update",),
    ),
)

"""Bugs in ``controlplane/core/bundles/placement/assignment.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_modular.py",)

BUGS: Final = (
    Bug(
        "assign: a preallocated bundle is placed again",
        "if former is not None and ",
        "if False and ",
        ("assign",),
    ),
    Bug(
        "assign: a chosen node's preallocation does not count",
        "context = context.with_preallocated(placement.node_id, bundle)",
        "pass",
        ("assign",),
    ),
)

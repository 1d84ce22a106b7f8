"""Bugs in ``controlplane/core/bundles/load/incarnations.py``: replaced processes count, or their successors do not."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_incarnations.py",)

BUGS: Final = (
    Bug(
        "the known incarnation of a node is taken for a former one",
        "each.incarnation < known.incarnation",
        "each.incarnation <= known.incarnation",
        tests=_TESTS,
    ),
    Bug(
        "a former incarnation counts until the first report of the next one alone",
        "min(end, each.first)",
        "each.first",
        tests=_TESTS,
    ),
    Bug(
        "later incarnations of a batch are judged after former ones",
        "for each in sorted(mine, key=lambda one: one.incarnation, reverse=True):",
        "for each in sorted(mine, key=lambda one: one.incarnation):",
        tests=_TESTS,
    ),
    Bug(
        "a node is what its process that reported last in the batch says",
        "sorted(batch, key=lambda one: one.incarnation)",
        "sorted(batch, key=lambda one: one.newest.position if one.newest else one.incarnation)",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/load/offset_cutoffs.py``: replaced incarnations count, or successors do not."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_offset_cutoffs.py",)

BUGS: Final = (
    Bug(
        "the known incarnation is taken for a former one, by offsets",
        "incarnation < known.get(place, incarnation)",
        "incarnation <= known.get(place, incarnation - 1)",
        tests=_TESTS,
    ),
    Bug(
        "former incarnations are judged before later ones, by offsets",
        "key=lambda each: each.incarnation, reverse=True",
        "key=lambda each: each.incarnation",
        tests=_TESTS,
    ),
    Bug(
        "a former incarnation counts until the report of the next one alone, by offsets",
        "min(first, end_of.get(place, first))",
        "first",
        tests=_TESTS,
    ),
    Bug(
        "an incarnation whose reports cannot be true replaces the former one",
        "        if first is not None:\n            end_of",
        "        first = first or 0\n        if first is not None:\n            end_of",
        tests=_TESTS,
    ),
    Bug(
        "the oldest incarnation of a step is known as its newest, by offsets",
        "newest.setdefault(place, incarnation)",
        "newest[place] = incarnation",
        tests=_TESTS,
    ),
)

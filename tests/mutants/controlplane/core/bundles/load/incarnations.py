"""Bugs in ``controlplane/core/bundles/load/incarnations.py``: replaced processes count, or their successors do not."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_incarnations.py",)

BUGS: Final = (
    Bug(
        "the known incarnation of a node is taken for a former one",
        "incarnation < known.incarnation",
        "incarnation <= known.incarnation",
        tests=_TESTS,
    ),
    Bug(
        "a former incarnation counts until the first report of the next one alone",
        "end = first if end is None or end.is_behind(first) else end",
        "end = first",
        tests=_TESTS,
    ),
    Bug(
        "later incarnations of a batch are judged after former ones",
        'sorted(mine, key=attrgetter("incarnation"), reverse=True)',
        'sorted(mine, key=attrgetter("incarnation"))',
        tests=_TESTS,
    ),
    Bug(
        "a node is what its process that reported last in the batch says",
        'sorted((each.newest for each in batch if each.newest is not None), key=attrgetter("incarnation"))',
        'sorted((each.newest for each in batch if each.newest is not None), key=attrgetter("position"))',
        tests=_TESTS,
    ),
    Bug(
        "a node that goes on in another partition is what the first part says",
        " or newest.position.is_behind(other.position)",
        "",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/load/reported_state.py``: a node's row goes back, or forgets its evaluations."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_incarnations.py",)

BUGS: Final = (
    Bug(
        "a report that is folded again replaces its node's row",
        "return self.offset > other.offset",
        "return self.offset >= other.offset",
        tests=_TESTS,
    ),
    Bug(
        "a report of an older process replaces its node's row",
        "self.incarnation < known.incarnation or ",
        "",
        tests=_TESTS,
    ),
    Bug(
        "a report makes its node forget its smoothed usage",
        "smoothed_usage=known.smoothed_usage",
        "smoothed_usage=None",
        tests=_TESTS,
    ),
)

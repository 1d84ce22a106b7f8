"""Bugs in ``controlplane/core/bundles/load/position_columns.py``: places in another order than that of the log."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_position_columns.py",)

BUGS: Final = (
    Bug(
        "within a partition a clock that is set back changes the order",
        "np.where(these.partition == others.partition, these.offset > others.offset, is_later)",
        "is_later | ((these.partition == others.partition) & (these.offset > others.offset))",
        tests=_TESTS,
    ),
    Bug(
        "of two partitions offsets are compared",
        "(these.append_time_ms == others.append_time_ms) & (these.partition > others.partition)",
        "(these.append_time_ms == others.append_time_ms) & (these.offset > others.offset)",
        tests=_TESTS,
    ),
    Bug(
        "a place stands behind itself",
        "these.offset > others.offset, is_later",
        "these.offset >= others.offset, is_later",
        tests=_TESTS,
    ),
)

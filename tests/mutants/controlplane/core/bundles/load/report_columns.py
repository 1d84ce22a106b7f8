"""Bugs in ``controlplane/core/bundles/load/report_columns.py``: verdicts over columns that are not each report's."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_report_columns.py",)

BUGS: Final = (
    Bug("a usage of a column below zero is plausible", "(usage >= 0) & (usage", "(usage", tests=_TESTS),
    Bug("a usage of a column without a limit counts", "(limit <= 0) | ((usage", "((usage", tests=_TESTS),
    Bug("one plausible resource is enough", ".all(axis=0)", ".any(axis=0)", tests=_TESTS),
    Bug(
        "bundles whose figures cannot be true are summed up", "figure[counted]", "figure[of_report >= 0]", tests=_TESTS
    ),
    Bug("sums over bundles are not judged", ".all(axis=0) & are_plausible(sums)", ".all(axis=0)", tests=_TESTS),
)

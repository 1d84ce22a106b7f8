"""Bugs in ``controlplane/core/bundles/load/report_columns.py``: what columns say is not what each report says."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_report_columns.py",)

BUGS: Final = (
    Bug("a usage of a column below zero is plausible", "(usage >= 0) & (usage", "(usage", tests=_TESTS),
    Bug("a usage of a column without a limit counts", "(limit <= 0) | ((usage", "((usage", tests=_TESTS),
    Bug("one plausible resource is enough", ".all(axis=0)", ".any(axis=0)", tests=_TESTS),
    Bug(
        "bundles whose figures cannot be true are summed up",
        "counted, count = are_plausible(loads), ",
        "counted, count = np.ones(loads.shape[1], np.bool_), ",
        tests=_TESTS,
    ),
    Bug(
        "sums over bundles are not judged",
        ".all(axis=0) & are_plausible(sums)",
        ".all(axis=0)",
        tests=_TESTS,
    ),
    Bug(
        "bundles are added up in the order of the report", "if usual and _is_in_order(report)", "if usual", tests=_TESTS
    ),
    Bug("a report with one wrong bundle is a usual one", " & (counted == counts)", "", tests=_TESTS),
    Bug(
        "usages of reports are taken in 64 bits",
        "share = _rounded(_rounded(usage) / in_32_bits)",
        "share = _rounded(usage) / in_32_bits",
        tests=_TESTS,
    ),
    Bug("a limit that is 0 in 32 bits counts", "np.where(in_32_bits > 0", "np.where(limit > 0", tests=_TESTS),
    Bug(
        "traffic has no former name of its weight",
        "weights.outbound",
        "weights.bandwidth_out",
        tests=_TESTS,
    ),
    Bug("the first resource of a report is its usage", "weighted > greatest", "greatest == -np.inf", tests=_TESTS),
    Bug("infinite usages are not kept", " & (not weights.keeps_infinite_usage)", "", tests=_TESTS),
)

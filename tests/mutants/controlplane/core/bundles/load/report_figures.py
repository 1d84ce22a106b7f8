"""Bugs in ``controlplane/core/bundles/load/report_figures.py``: figures that cannot be true count."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("streaming/load/test_load_decoding.py::test_a_report_is_judged_as_it_is_folded_alone",)

BUGS: Final = (
    Bug(
        "the sums of a report hold figures that cannot be true",
        "loads[counts]",
        "loads",
        tests=_TESTS,
    ),
    Bug(
        "the sums of a report are taken in its own order",
        "sorted(report.bundles, key=_BUNDLE_ID)",
        "list(report.bundles)",
        tests=_TESTS,
    ),
    Bug(
        "a node with resources that cannot be true is plausible",
        "of_node is None, tuple(wrong)",
        "True, tuple(wrong)",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/core/deciding/bundles/steps.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py",)

BUGS: Final = (
    Bug(
        "a report for an earlier row counts",
        "(report.version, report.step) == (bundle.version, step)",
        "report.step == step",
        tests=_TESTS,
    ),
    Bug(
        "a report from before the row counts, for a namespace that was deleted",
        "if report is None or has_read < bundle.state_epoch:",
        "if report is None:",
        tests=("unit/core/deciding/bundles/test_ending_namespaces.py",),
    ),
    Bug(
        "a bundle is assigned to a next owner that may own nothing any more",
        "elif work.may_own(bundle.next_owner) and not work.is_ending(bundle):",
        "elif not work.is_ending(bundle):",
        tests=_TESTS,
    ),
    Bug(
        "a next owner that does not open is waited for without end",
        "        return passed_ms >= self._work.state.cluster.policy.handoff_limit_ms",
        "        return False",
        tests=_TESTS,
    ),
    Bug(
        "a next owner that drains opens a bundle only to give it away",
        "elif node is not None and not work.may_own(node.node_id):",
        "elif False:",
        tests=("unit/core/deciding/bundles/test_next_owners.py",),
    ),
    Bug(
        "a split that is given up ends the order to end with its namespace",
        "if order is not None and order.kind is BundleOrderKind.SPLIT:",
        "if order is not None:",
        tests=("unit/core/deciding/bundles/test_ending_namespaces.py",),
    ),
    Bug(
        "bounds that are not inside of the bundle split it",
        "divides = inner_bounds(bundle.hash_range, 0, bounds) == bounds",
        "divides = True",
        tests=("unit/core/deciding/bundles/test_split_bounds.py",),
    ),
)

"""Bugs in ``controlplane/core/deciding/bundles/begin.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py",)

BUGS: Final = (
    Bug(
        "all orders are begun at once",
        "                room -= work.has_row(bundle_id)",
        "                pass",
        tests=_TESTS,
    ),
    Bug(
        "a bundle is taken from a node whose former process may still serve it",
        "work.consents.has_former_process(owner):",
        "False:",
        tests=_TESTS,
    ),
    Bug(
        "a node that may own bundles again is relieved",
        "case BundleOrderKind.RELIEVE if work.may_own(owner.node_id):",
        "case BundleOrderKind.RELIEVE if False:",
        tests=_TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/ownership_channel/table.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_table.py",)

BUGS: Final = (
    Bug(
        "compaction keeps the places of the first records",
        "records[each.written.bundle_id] = records.pop(each.written.bundle_id)",
        "pass",
        (),
        _TESTS,
    ),
)

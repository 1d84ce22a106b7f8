"""Bugs in ``controlplane/core/bundles/ownership_channel/record.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_table.py",)

BUGS: Final = (
    Bug(
        "a name of white space counts as a node",
        "all(each.isspace() and each not in _NOT_BLANK_IN_JAVA for each in node_id)",
        "not node_id",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "versions grow beyond 64 bits",
        "return LEAST_VERSION if record.version == GREATEST_VERSION else record.version + 1",
        "return record.version + 1",
        ("conflict",),
        _TESTS,
    ),
)

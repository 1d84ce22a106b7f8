"""Bugs in ``controlplane/core/bundles/ownership_channel/conflict.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/ownership_channel/test_table.py",)

BUGS: Final = (
    Bug(
        "a record with the present version is taken",
        "if present.version >= read.version:",
        "if present.version > read.version:",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "a record with the next version is taken without a check",
        "if present.version < read.version - 1:",
        "if present.version < read.version:",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "the metadata store takes a record behind a gap of versions",
        "return Verdict.GAP if storage is Storage.SYSTEM_TOPIC else Verdict.VERSION_GAP",
        "return Verdict.GAP",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "any version follows the greatest one",
        "if (present.version, read.version) == (GREATEST_VERSION, LEAST_VERSION):",
        "if present.version == GREATEST_VERSION:",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "the metadata store checks the state of a first record",
        "return Verdict.FIRST if read.version == FIRST_VERSION else Verdict.NOT_FIRST_VERSION",
        "return None if read.version == FIRST_VERSION else Verdict.NOT_FIRST_VERSION",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "an owner may release a bundle to itself",
        "matches = present.destination == read.source and present.destination != read.destination",
        "matches = present.destination == read.source",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "a release may be followed by an assignment to nobody",
        "matches = same and not is_blank(read.destination)",
        "matches = same",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "a free bundle may be assigned with a source",
        "matches = is_blank(read.source) and not is_blank(read.destination)",
        "matches = not is_blank(read.destination)",
        ("conflict",),
        _TESTS,
    ),
    Bug(
        "an owned bundle without an owner is compared like any other",
        "    if present.destination is None:\n        return Verdict.NO_OWNER\n",
        "",
        ("conflict",),
        _TESTS,
    ),
)

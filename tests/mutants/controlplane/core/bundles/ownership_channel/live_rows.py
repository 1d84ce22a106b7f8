"""Bugs in ``controlplane/core/bundles/ownership_channel/live_rows.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/deciding/bundles/test_handoffs.py",)

BUGS: Final = (
    Bug(
        "a next owner serves under the token of the former owner",
        "        former_owner=bundle.former_owner,\n        owner_epoch=epoch,\n",
        "        former_owner=bundle.former_owner,\n",
        tests=_TESTS,
    ),
    Bug(
        "a row that may not follow is written",
        "    if verdict.keeps:",
        "    if False:",
        tests=("unit/core/bundles/ownership_channel/test_live_rows.py",),
    ),
    Bug(
        "parts of a bundle forget which one they were",
        "            parent=bundle.hash_range.name,\n",
        "",
        tests=_TESTS,
    ),
)

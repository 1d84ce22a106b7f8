"""Bugs in ``controlplane/core/bundles/placement/affinity.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_modular.py",)

BUGS: Final = (
    Bug(
        "quirk E is gone: a named destination is kept by bundle",
        "return range_of(bundle_id) if self.keyed_by_range_only else bundle_id",
        "return bundle_id",
        (),
        _TESTS,
    ),
)

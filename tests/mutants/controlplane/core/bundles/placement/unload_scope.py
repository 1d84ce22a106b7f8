"""Bugs in ``controlplane/core/bundles/placement/unload_scope.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_isolation.py",)

BUGS: Final = (
    Bug(
        "isolation: other primary nodes unload what changed only",
        "other_primaries = old is not None and Counter(old.primary) != Counter(new.primary)",
        "other_primaries = False",
        (),
        _TESTS,
    ),
    Bug(
        "isolation: expressions of both policies are unloaded, too",
        "if each not in common}",
        "}",
        (),
        _TESTS,
    ),
)

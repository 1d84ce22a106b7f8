"""Bugs in ``controlplane/core/bundles/placement/version.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_filters.py",)

BUGS: Final = (
    Bug(
        "version: only nodes with the latest build are kept",
        "if compare_releases(version, latest) == 0:",
        "if compare_builds(version, latest) == 0:",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "version: numbers are compared as texts",
        "if _is_number(mine) and _is_number(theirs):",
        "if False:",
        ("assign",),
        _TESTS,
    ),
    Bug(
        "version: a candidate before the release is as good",
        "return len(second.pre_release) - len(first.pre_release)",
        "return 0",
        ("assign",),
        _TESTS,
    ),
)

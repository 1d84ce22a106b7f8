"""Bugs in ``controlplane/core/bundles/splitting/limits.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/splitting/test_execution.py",)

BUGS: Final = (
    Bug(
        "a bundle at a limit is split",
        "if each.measured > each.allowed)",
        "if each.measured >= each.allowed)",
        ("bundle_split",),
    ),
    Bug(
        "a bundle of two topics is not split",
        "if bundle.topic_count < settings.min_topics:",
        "if bundle.topic_count <= settings.min_topics:",
        ("bundle_split",),
        _TESTS,
    ),
    Bug(
        "a namespace gets one bundle too many",
        "+ taken < settings.max_bundles_per_namespace:",
        "+ taken <= settings.max_bundles_per_namespace:",
        ("bundle_split",),
    ),
    Bug(
        "splits of the round do not count",
        "accepted[bundle.namespace] = taken + 1",
        "accepted[bundle.namespace] = taken",
        ("bundle_split",),
    ),
    Bug(
        "no sessions at all are a limit",
        "settings.max_sessions if settings.max_sessions > 0 or",
        "settings.max_sessions if settings.max_sessions >= 0 or",
        ("bundle_split",),
        _TESTS,
    ),
)

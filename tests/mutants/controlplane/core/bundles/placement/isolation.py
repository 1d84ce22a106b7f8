"""Bugs in ``controlplane/core/bundles/placement/isolation.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_isolation.py",)

BUGS: Final = (
    Bug(
        "isolation: the beginning of a name is enough",
        "if pattern.fullmatch(name):",
        "if pattern.match(name):",
        ("isolation",),
    ),
    Bug(
        "isolation: secondaries help out at the least number of primaries",
        "return primary_count < self.min_primaries",
        "return primary_count <= self.min_primaries",
        ("isolation",),
    ),
    Bug(
        "isolation: the host ends at the first colon",
        'host, colon, _ = node_id.rpartition(":")',
        'host, colon, _ = node_id.partition(":")',
        ("isolation",),
        _TESTS,
    ),
    Bug(
        "isolation: the last policy of a namespace counts",
        "return next(holding, None)",
        "return [None, *holding][-1]",
        ("isolation",),
    ),
    Bug(
        "isolation: reserved nodes serve namespaces without a policy",
        "elif not context.rules.isolation.is_shared(node_id):",
        "elif False:",
        ("isolation",),
    ),
    Bug(
        "isolation: the kind of topics does not count without a policy",
        "if not context.takes(node_id, non_persistent=bundle.has_non_persistent_topic):",
        "if False:",
        ("isolation",),
    ),
)

"""Bugs in ``controlplane/core/bundles/load/top_bundles.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/load/test_load_order.py",)

BUGS: Final = (
    Bug(
        "the busiest bundle is reported first",
        "for position in reversed(order))",
        "for position in order)",
        ("topk",),
    ),
    Bug(
        "idle bundles are reported",
        "(settings.includes_idle_bundles or not idle)",
        "True",
        ("topk",),
    ),
    Bug(
        "bundles with policies are reported",
        "return settings.includes_bundles_with_policies or not has_policies",
        "return True",
        ("topk",),
    ),
    Bug(
        "bundles of the system are reported",
        "in {SYSTEM_NAMESPACE, *settings.excluded_namespaces}",
        "in {*settings.excluded_namespaces}",
        ("topk",),
        _TESTS,
    ),
    Bug(
        "the partition stops one element too late",
        "if equal <= count - 1 < greater_end:",
        "if equal <= count < greater_end:",
        ("partition_sort", "topk"),
    ),
    Bug(
        "the partition turns on its first element",
        "pivot = positions[end]",
        "pivot = positions[start]",
        ("partition_sort",),
    ),
)

"""Bugs in ``controlplane/core/bundles/placement/least_resource_usage.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/placement/test_strategies.py",)

BUGS: Final = (
    Bug(
        "least usage: a node exactly so far below the mean is not good",
        "if usage + difference <= mean)",
        "if usage + difference < mean)",
        ("least_resource_usage", "ext_least_resource"),
        _TESTS,
    ),
    Bug(
        "least usage: the difference is subtracted from the mean",
        "if usage + difference <= mean)",
        "if usage <= mean - difference)",
        ("least_resource_usage", "ext_least_resource"),
        _TESTS,
    ),
    Bug(
        "least usage: the mean is summed in another order",
        "for usage in usages.values():",
        "for usage in reversed(usages.values()):",
        ("least_resource_usage", "ext_least_resource"),
        _TESTS,
    ),
    Bug(
        "least usage: an idle node keeps its history",
        "if former is None or not load.bundles or silent:",
        "if former is None:",
        ("least_resource_usage",),
    ),
    Bug(
        "least usage: history and usage change places",
        "return former * weight + (1 - weight) * usage",
        "return usage * weight + (1 - weight) * former",
        ("least_resource_usage",),
    ),
    Bug(
        "least usage: candidates without a load count in the stored mean",
        "mean = total / len(usages) if usages else 0.0",
        "mean = total / len(tuple(candidates)) if usages else 0.0",
        ("ext_least_resource",),
    ),
)

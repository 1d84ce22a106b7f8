"""Bugs in ``controlplane/core/bundles/shedding/threshold.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_threshold.py",)

BUGS: Final = (
    Bug(
        "threshold: a node at the threshold stays as it is",
        "if usage < mean + threshold:",
        "if usage <= mean + threshold:",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: history and usage change places",
        "former * weight + (1 - weight) * usage",
        "usage * weight + (1 - weight) * former",
        ("threshold_shed",),
    ),
    Bug(
        "threshold: no margin beyond the excess",
        "(usage - mean - threshold + _MARGIN)",
        "(usage - mean - threshold)",
        ("threshold_shed",),
    ),
    Bug(
        "threshold: the excess is computed in another order",
        "(usage - mean - threshold + _MARGIN)",
        "(usage - (mean + threshold) + _MARGIN)",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: the mean is summed in another order",
        "for node_id, usage in usages.items():",
        "for node_id, usage in reversed(list(usages.items())):",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: quirk C is gone",
        "if self.settings.smooths_again_for_lower_boundary:",
        "if False:",
        ("threshold_shed",),
    ),
    Bug(
        "threshold: a target of the minimum itself is too small",
        "if target < least:",
        "if target <= least:",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: a node at the lower boundary is idle",
        "if usages[node_id] < boundary]",
        "if usages[node_id] <= boundary]",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: of equally busy nodes the last one sheds",
        "if usages[node_id] > greatest and",
        "if usages[node_id] >= greatest and",
        ("threshold_shed",),
        _TESTS,
    ),
    Bug(
        "threshold: the lower boundary moves the whole threshold",
        "_LOWER_BOUNDARY_FACTOR: Final = 0.5",
        "_LOWER_BOUNDARY_FACTOR: Final = 1.0",
        ("threshold_shed",),
        _TESTS,
    ),
)

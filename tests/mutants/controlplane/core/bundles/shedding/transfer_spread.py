"""Bugs in ``controlplane/core/bundles/shedding/transfer_spread.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_transfer.py",)

BUGS: Final = (
    Bug(
        "transfer: a load of the greatest age itself is outdated",
        "if age_ms > lifetime_s * _MS_PER_S:",
        "if age_ms >= lifetime_s * _MS_PER_S:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a node still cools down after the whole time",
        "if elapsed_ms < cool_down_s * _MS_PER_S:",
        "if elapsed_ms <= cool_down_s * _MS_PER_S:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a load of the share of the mean itself is too little",
        "if load.smoothed_usage < mean * share:",
        "if load.smoothed_usage <= mean * share:",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: a load at the threshold itself is too much",
        "if load.smoothed_usage > threshold and",
        "if load.smoothed_usage >= threshold and",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: the share of the mean is the whole target deviation",
        "max(0.0, target_deviation / 2)",
        "max(0.0, target_deviation)",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: the loads are summed in another order",
        "for usage in usages:",
        "for usage in sorted(usages):",
        ("transfer_shed",),
    ),
    Bug(
        "transfer: a variance below 0 counts as positive",
        "square_root(square_sum / count - mean * mean)",
        "square_root(abs(square_sum / count - mean * mean))",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: the target is computed in another order",
        "divide(most.bytes_per_s * ((most.smoothed_usage - least.smoothed_usage) / 2), most.smoothed_usage)",
        "divide(most.bytes_per_s, most.smoothed_usage) * ((most.smoothed_usage - least.smoothed_usage) / 2)",
        ("transfer_shed",),
        _TESTS,
    ),
    Bug(
        "transfer: nodes with an outdated load are not paired",
        "paired = view.loads if pairs_outdated else fresh",
        "paired = fresh",
        ("transfer_shed",),
    ),
)

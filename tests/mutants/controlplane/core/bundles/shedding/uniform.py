"""Bugs in ``controlplane/core/bundles/shedding/uniform.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/shedding/test_uniform.py",)

BUGS: Final = (
    Bug(
        "uniform: a rate difference of the threshold itself counts",
        "if 0 < settings.rate_difference_percent < difference_percent:",
        "if 0 < settings.rate_difference_percent <= difference_percent:",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: a throughput ratio of the threshold itself counts",
        "if 0 < settings.throughput_ratio < ratio:",
        "if 0 < settings.throughput_ratio <= ratio:",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: the difference in percent is taken in another order",
        "divide((rates.most - rates.least) * 100, rates.least)",
        "divide(rates.most - rates.least, rates.least) * 100",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: what is to be moved is not limited to 32 bits",
        "target = to_int32(target)",
        "target = float(int(target))",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: a subtraction in 32 bits does not wrap around",
        "return wrap_int32(int(remaining) + to_int32(-traffic))",
        "return int(remaining) + to_int32(-traffic)",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: a rate of the minimum itself is not moved",
        "if not target >= least:",
        "if not target > least:",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: a bundle that fits exactly stays",
        "if bundle.traffic <= remaining:",
        "if bundle.traffic < remaining:",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: of equally busy nodes the last one sheds",
        "if amount > most:",
        "if amount >= most:",
        ("uniform_shed",),
        _TESTS,
    ),
    Bug(
        "uniform: one bundle more than the greatest number",
        "if limited and len(choices) >= self.settings.max_bundles:",
        "if limited and len(choices) > self.settings.max_bundles:",
        ("uniform_shed",),
    ),
    Bug(
        "uniform: nothing stands in for an idle node's traffic",
        "1.0 if -_NEAR_ZERO <= least <= _NEAR_ZERO else least",
        "least",
        ("uniform_shed",),
    ),
)

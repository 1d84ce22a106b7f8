"""Bugs in ``controlplane/core/bundles/splitting/algorithms.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/splitting/test_algorithms.py",)

BUGS: Final = (
    Bug(
        "range: the middle is rounded up",
        "middle = lower + (upper - lower) // 2",
        "middle = lower + (upper - lower + 1) // 2",
        ("split_boundary",),
    ),
    Bug(
        "topic count: the upper middle hash is the position",
        "position = hashes[half - 1] + (hashes[half] - hashes[half - 1]) // 2",
        "position = hashes[half]",
        ("split_boundary",),
    ),
    Bug(
        "specified: the lower bound is inside",
        "if lower < each < upper)",
        "if lower <= each < upper)",
        ("split_boundary",),
    ),
    Bug(
        "specified: a forced split needs two topics",
        "if not request.is_forced and (refusal",
        "if (refusal",
        ("split_boundary",),
    ),
    Bug(
        "flow: a bundle at the threshold is not split",
        "if rate < rate_limit * factor and",
        "if rate <= rate_limit * factor and",
        ("split_boundary",),
        _TESTS,
    ),
    Bug(
        "flow: a part at the limit is too much",
        "if part_rate + next_rate > rate_limit or",
        "if part_rate + next_rate >= rate_limit or",
        ("split_boundary",),
        _TESTS,
    ),
    Bug(
        "flow: the position is one hash too low",
        "positions.append(below + (hashed - below) // 2 + 1)",
        "positions.append(below + (hashed - below) // 2)",
        ("split_boundary",),
    ),
    Bug(
        "flow: the first topic of a part does not count",
        "part_rate, part_throughput = next_rate, next_throughput",
        "part_rate, part_throughput = 0.0, 0.0",
        ("split_boundary",),
    ),
    Bug(
        "flow: a topic with throughput alone is idle",
        "if rate <= 0 and throughput <= 0:",
        "if rate <= 0 or throughput <= 0:",
        ("split_boundary",),
        _TESTS,
    ),
)

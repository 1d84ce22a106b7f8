"""Bugs in the rules of hash ranges and of splits."""

from typing import Final

from tests.conformance.mutants.mutant import Mutant

_RANGES: Final = "bundles/ranges.py"
_LIMITS: Final = "bundles/splitting/limits.py"
_TASK: Final = "bundles/splitting/leader_task.py"
_ALGORITHMS: Final = "bundles/splitting/algorithms.py"
_EXECUTION: Final = "bundles/splitting/execution.py"
_OWNER: Final = "bundles/splitting/owner_task.py"
_LOOKUP: Final = "bundles/splitting/named_algorithms.py"

_RANGE_TESTS: Final = ("unit/core/bundles/test_ranges.py",)
_EXECUTION_TESTS: Final = ("unit/core/bundles/splitting/test_execution.py",)
_ALGORITHM_TESTS: Final = ("unit/core/bundles/splitting/test_algorithms.py",)
_OWNER_TESTS: Final = ("unit/core/bundles/splitting/test_owner_task.py",)

MUTANTS: Final = (
    Mutant(
        "the width of a bundle is a part of one hash less",
        _RANGES,
        "width = MAX_RANGES // count",
        "width = LAST_HASH // count",
        ("create_bundles",),
    ),
    Mutant(
        "the lower bound belongs to the bundle below",
        _RANGES,
        "index = min(bisect_right(self.bounds, hashed), len(self.bounds) - 1)",
        "index = min(max(bisect_left(self.bounds, hashed), 1), len(self.bounds) - 1)",
        ("bundle_for_hash",),
    ),
    Mutant(
        "the last hash has a bundle in Pulsar, too",
        _RANGES,
        "(last_hash_has_no_bundle and hashed == LAST_HASH)",
        "False",
        ("bundle_for_hash",),
    ),
    Mutant(
        "topics are hashed by another checksum",
        _RANGES,
        "return zlib.crc32(java_utf8(key))",
        "return zlib.adler32(java_utf8(key))",
        ("find_bundle",),
    ),
    Mutant(
        "a bundle between neighbours can be split",
        _RANGES,
        "return self.upper - self.lower > 1",
        "return self.upper - self.lower >= 1",
        ("split_bundle",),
        _RANGE_TESTS,
    ),
    Mutant(
        "a bundle can be split at its lower bound",
        _RANGES,
        "if inner and not target.lower < inner[0]",
        "if inner and not target.lower <= inner[0]",
        ("split_bundle",),
        _RANGE_TESTS,
    ),
    Mutant(
        "the first part of a split takes the rest",
        _RANGES,
        "tuple(target.lower + width * index for index in range(1, parts if width else 2))",
        "tuple(target.upper - width * index for index in range(parts - 1 if width else 1, 0, -1))",
        ("split_bundle",),
    ),
    Mutant(
        "a bundle at a limit is split",
        _LIMITS,
        "if each.measured > each.allowed)",
        "if each.measured >= each.allowed)",
        ("bundle_split",),
    ),
    Mutant(
        "a bundle of two topics is not split",
        _LIMITS,
        "if bundle.topic_count < settings.min_topics:",
        "if bundle.topic_count <= settings.min_topics:",
        ("bundle_split",),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "a namespace gets one bundle too many",
        _LIMITS,
        "+ taken < settings.max_bundles_per_namespace:",
        "+ taken <= settings.max_bundles_per_namespace:",
        ("bundle_split",),
    ),
    Mutant(
        "splits of the round do not count",
        _LIMITS,
        "accepted[bundle.namespace] = taken + 1",
        "accepted[bundle.namespace] = taken",
        ("bundle_split",),
    ),
    Mutant(
        "no sessions at all are a limit",
        _LIMITS,
        "settings.max_sessions if settings.max_sessions > 0 or",
        "settings.max_sessions if settings.max_sessions >= 0 or",
        ("bundle_split",),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "short-term rates are compared with the limits",
        _TASK,
        "history.averages.long_term.load.message_rate_per_s",
        "history.averages.short_term.load.message_rate_per_s",
        ("bundle_split",),
    ),
    Mutant(
        "producers are no sessions",
        _TASK,
        "latest.consumer_count + latest.producer_count",
        "latest.consumer_count",
        ("bundle_split",),
    ),
    Mutant(
        "range: the middle is rounded up",
        _ALGORITHMS,
        "middle = lower + (upper - lower) // 2",
        "middle = lower + (upper - lower + 1) // 2",
        ("split_boundary",),
    ),
    Mutant(
        "topic count: the upper middle hash is the position",
        _ALGORITHMS,
        "position = hashes[half - 1] + (hashes[half] - hashes[half - 1]) // 2",
        "position = hashes[half]",
        ("split_boundary",),
    ),
    Mutant(
        "specified: the lower bound is inside",
        _ALGORITHMS,
        "if lower < each < upper)",
        "if lower <= each < upper)",
        ("split_boundary",),
    ),
    Mutant(
        "specified: a forced split needs two topics",
        _ALGORITHMS,
        "if not request.is_forced and (refusal",
        "if (refusal",
        ("split_boundary",),
    ),
    Mutant(
        "flow: a bundle at the threshold is not split",
        _ALGORITHMS,
        "if rate < rate_limit * factor and",
        "if rate <= rate_limit * factor and",
        ("split_boundary",),
        _ALGORITHM_TESTS,
    ),
    Mutant(
        "flow: a part at the limit is too much",
        _ALGORITHMS,
        "if part_rate + next_rate > rate_limit or",
        "if part_rate + next_rate >= rate_limit or",
        ("split_boundary",),
        _ALGORITHM_TESTS,
    ),
    Mutant(
        "flow: the position is one hash too low",
        _ALGORITHMS,
        "positions.append(below + (hashed - below) // 2 + 1)",
        "positions.append(below + (hashed - below) // 2)",
        ("split_boundary",),
    ),
    Mutant(
        "flow: the first topic of a part does not count",
        _ALGORITHMS,
        "part_rate, part_throughput = next_rate, next_throughput",
        "part_rate, part_throughput = 0.0, 0.0",
        ("split_boundary",),
    ),
    Mutant(
        "flow: a topic with throughput alone is idle",
        _ALGORITHMS,
        "if rate <= 0 and throughput <= 0:",
        "if rate <= 0 or throughput <= 0:",
        ("split_boundary",),
        _ALGORITHM_TESTS,
    ),
    Mutant(
        "parts are unloaded if one of both policies agrees",
        _EXECUTION,
        "(consent.isolation and consent.anti_affinity)",
        "(consent.isolation or consent.anti_affinity)",
        (),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "parts are unloaded against the setting",
        _EXECUTION,
        "settings.unloads_children and agreed",
        "agreed",
        (),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "a vanished bundle is split",
        _EXECUTION,
        "if not boundaries.has(bundle):",
        "if False:",
        (),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "a bundle keeps its averages if no position is found",
        _EXECUTION,
        "return self.cause in (NoSplitCause.NO_POSITION, NoSplitCause.REFUSED)",
        "return False",
        (),
        _EXECUTION_TESTS,
    ),
    Mutant(
        "an unknown algorithm is refused when a split is carried out",
        _LOOKUP,
        "return self.by_name.get(name, self.by_name[self.default])",
        "return self.configured(name)",
        (),
        (*_EXECUTION_TESTS, *_ALGORITHM_TESTS),
    ),
    Mutant(
        "an owner splits one round too early",
        _OWNER,
        "if counted[bundle_id] <= settings.max_hits:",
        "if counted[bundle_id] < settings.max_hits:",
        (),
        _OWNER_TESTS,
    ),
    Mutant(
        "an owner splits at the first of several positions",
        _OWNER,
        "if len(positions) != 1:",
        "if not positions:",
        (),
        _OWNER_TESTS,
    ),
    Mutant(
        "only a bundle with both bounds of another waits for it",
        _OWNER,
        "if bundle.lower in lowers or bundle.upper in uppers:",
        "if bundle.lower in lowers and bundle.upper in uppers:",
        (),
        _OWNER_TESTS,
    ),
    Mutant(
        "a round has one split too many",
        _OWNER,
        "elif len(splits) == settings.max_splits_per_round:",
        "elif len(splits) > settings.max_splits_per_round:",
        (),
        _OWNER_TESTS,
    ),
    Mutant(
        "hits stay when a bundle is within its limits again",
        _OWNER,
        "counted.pop(bundle_id, None)",
        "pass",
        (),
        _OWNER_TESTS,
    ),
    Mutant(
        "an owner may split beyond the namespace's greatest number",
        _OWNER,
        "if count + accepted < settings.max_bundles_per_namespace:",
        "if count < settings.max_bundles_per_namespace:",
        (),
        _OWNER_TESTS,
    ),
)

"""Bugs in ``controlplane/core/bundles/ranges.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/bundles/test_ranges.py",)

BUGS: Final = (
    Bug(
        "the width of a bundle is a part of one hash less",
        "width = MAX_RANGES // count",
        "width = LAST_HASH // count",
        ("create_bundles",),
    ),
    Bug(
        "the lower bound belongs to the bundle below",
        "index = min(bisect_right(self.bounds, hashed), len(self.bounds) - 1)",
        "index = min(max(bisect_left(self.bounds, hashed), 1), len(self.bounds) - 1)",
        ("bundle_for_hash",),
    ),
    Bug(
        "the last hash has a bundle in Pulsar, too",
        "(last_hash_has_no_bundle and hashed == LAST_HASH)",
        "False",
        ("bundle_for_hash",),
    ),
    Bug(
        "topics are hashed by another checksum",
        "return zlib.crc32(java_utf8(key))",
        "return zlib.adler32(java_utf8(key))",
        ("find_bundle",),
    ),
    Bug(
        "a bundle between neighbours can be split",
        "return self.upper - self.lower > 1",
        "return self.upper - self.lower >= 1",
        ("split_bundle",),
        _TESTS,
    ),
    Bug(
        "a bundle can be split at its lower bound",
        "if inner and not target.lower < inner[0]",
        "if inner and not target.lower <= inner[0]",
        ("split_bundle",),
        _TESTS,
    ),
    Bug(
        "the first part of a split takes the rest",
        "tuple(target.lower + width * index for index in range(1, parts if width else 2))",
        "tuple(target.upper - width * index for index in range(parts - 1 if width else 1, 0, -1))",
        ("split_bundle",),
    ),
)

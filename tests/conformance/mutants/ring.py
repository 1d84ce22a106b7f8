"""Bugs in HiveMQ's ring."""

from functools import partial
from typing import Final

from tests.conformance.mutants.mutant import Mutant

_HASH: Final = "slots/ring/text_hash.py"
_RING: Final = "slots/ring/hash_ring.py"
_MEMBERS: Final = "slots/ring/member_rings.py"

_RING_TESTS: Final = ("unit/core/slots/test_hash_ring.py",)
_MEMBER_TESTS: Final = ("unit/core/slots/test_member_rings.py",)
_mutant = partial(Mutant, system="ring")

MUTANTS: Final = (
    _mutant(
        "hashes are unsigned",
        _HASH,
        "return unsigned if unsigned < _SIGN_BIT else unsigned - _TWO_TO_64",
        "return unsigned",
        ("hash",),
    ),
    _mutant(
        "texts are hashed as big-endian units",
        _HASH,
        'text.encode("utf-16-le", "surrogatepass")',
        'text.encode("utf-16-be", "surrogatepass")',
        ("hash",),
    ),
    _mutant(
        "a node has one place too few",
        _HASH,
        "PLACES_PER_NODE: Final = 500",
        "PLACES_PER_NODE: Final = 499",
        ("buckets",),
    ),
    _mutant(
        "names of virtual nodes have a separator",
        _HASH,
        'return f"{node}{index}"',
        'return f"{node}-{index}"',
        ("buckets",),
    ),
    _mutant(
        "names are compared by characters",
        _HASH,
        'return text.encode("utf-16-be", "surrogatepass")',
        'return text.encode("utf-8", "surrogatepass")',
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "a joining node leaves every shared place",
        _RING,
        "if present is None or utf16_order(present.name) > limit:",
        "if present is None:",
        ("lookup",),
    ),
    _mutant(
        "a joining node takes every shared place",
        _RING,
        "if present is None or utf16_order(present.name) > limit:",
        "if True:",
        ("lookup",),
    ),
    _mutant(
        "a shared place is compared with the name of the joining node alone",
        _RING,
        'limit = utf16_order(f"{node}1")',
        'limit = utf16_order(f"{node}")',
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "an equal name gives up its place",
        _RING,
        "utf16_order(present.name) > limit:",
        "utf16_order(present.name) >= limit:",
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "a leaving node takes its own places only",
        _RING,
        "            self._taken.pop(place, None)",
        "            if place in self._taken and self._taken[place].node == node:\n"
        "                del self._taken[place]",
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "a key at a place belongs to the next one",
        _RING,
        "return bisect_left(places, place) % len(places)",
        "from bisect import bisect_right\n        return bisect_right(places, place) % len(places)",
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "a key behind the last place belongs to the last node",
        _RING,
        "return bisect_left(places, place) % len(places)",
        "return min(bisect_left(places, place), len(places) - 1)",
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant("the owner is its own replica", _RING, "if node != owner:", "if True:", ("lookup",)),
    _mutant(
        "replicas are not searched for behind the end of the ring",
        _RING,
        "for index in range(start + 1, start + len(places)):",
        "for index in range(start + 1, len(places)):",
        ("lookup",),
        _RING_TESTS,
    ),
    _mutant(
        "a joining node is not written to",
        _MEMBERS,
        "frozenset({MemberState.JOINING, MemberState.RUNNING, MemberState.MERGING})",
        "frozenset({MemberState.RUNNING, MemberState.MERGING})",
        (),
        _MEMBER_TESTS,
    ),
    _mutant(
        "a node that missed writes is written to before it is given them",
        _MEMBERS,
        "frozenset({MemberState.JOINING, MemberState.RUNNING, MemberState.MERGING})",
        "frozenset(MemberState) - _NEVER_USED - {MemberState.NOT_JOINED}",
        (),
        _MEMBER_TESTS,
    ),
    _mutant(
        "writes go to the primary ring only",
        _MEMBERS,
        "return (self.primary.replicas(key, count) | after) - {self.primary.owner(key)}",
        "return self.primary.replicas(key, count)",
        (),
        _MEMBER_TESTS,
    ),
    _mutant(
        "the minority ring says who may be read",
        _MEMBERS,
        "return self.primary.replicas(key, count) | {self.primary.owner(key)}",
        "return self.minority.replicas(key, count) | {self.minority.owner(key)}",
        (),
        _MEMBER_TESTS,
    ),
    _mutant(
        "a node that leaves twice takes places from others",
        _MEMBERS,
        "elif not wanted and node in ring.nodes:",
        "elif not wanted:",
        (),
        _MEMBER_TESTS,
    ),
)

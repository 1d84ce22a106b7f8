"""Bugs in ``controlplane/core/slots/ring/hash_ring.py``."""

from typing import Final

from tests.mutants.mutant import Bug

_TESTS: Final = ("unit/core/slots/test_hash_ring.py",)

BUGS: Final = (
    Bug(
        "a joining node leaves every shared place",
        "if present is None or utf16_order(present.name) > limit:",
        "if present is None:",
        ("lookup",),
    ),
    Bug(
        "a joining node takes every shared place",
        "if present is None or utf16_order(present.name) > limit:",
        "if True:",
        ("lookup",),
    ),
    Bug(
        "a shared place is compared with the name of the joining node alone",
        'limit = utf16_order(f"{node}1")',
        'limit = utf16_order(f"{node}")',
        ("lookup",),
        _TESTS,
    ),
    Bug(
        "an equal name gives up its place",
        "utf16_order(present.name) > limit:",
        "utf16_order(present.name) >= limit:",
        ("lookup",),
        _TESTS,
    ),
    Bug(
        "a leaving node takes its own places only",
        "            self._taken.pop(place, None)",
        "            if place in self._taken and self._taken[place].node == node:\n"
        "                del self._taken[place]",
        ("lookup",),
        _TESTS,
    ),
    Bug(
        "a key at a place belongs to the next one",
        "return bisect_left(places, place) % len(places)",
        "from bisect import bisect_right\n        return bisect_right(places, place) % len(places)",
        ("lookup",),
        _TESTS,
    ),
    Bug(
        "a key behind the last place belongs to the last node",
        "return bisect_left(places, place) % len(places)",
        "return min(bisect_left(places, place), len(places) - 1)",
        ("lookup",),
        _TESTS,
    ),
    Bug(
        "the owner is its own replica",
        "if node != owner:",
        "if True:",
        ("lookup",),
    ),
    Bug(
        "replicas are not searched for behind the end of the ring",
        "for index in range(start + 1, start + len(places)):",
        "for index in range(start + 1, len(places)):",
        ("lookup",),
        _TESTS,
    ),
)

"""Boundaries, names and splits of hash ranges, and the range of a hash or of a topic, as Pulsar has them.

A namespace's hash space reaches from 0 to 2^32 - 1. Its boundaries are ascending numbers from 0 to 2^32 - 1, and each
two neighbours bound a range. The lower bound belongs to the range and the upper one does not, except for the last
range: it holds 2^32 - 1, its upper bound.
"""

import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from controlplane.core.values.java_text import java_utf8
from controlplane.errors import ConfigurationError, UnroutableError

LAST_HASH: Final = (1 << 32) - 1
"""The greatest hash, and the upper bound of the last range."""
MAX_RANGES: Final = 1 << 32
"""Pulsar's greatest number of bundles of a namespace."""
_MIN_BOUNDARIES: Final = 2
_RANGE_NAME: Final = re.compile(r"0x([0-9a-f]{8})_0x([0-9a-f]{8}|100000000)")
_FULL_TOPIC_NAME: Final = re.compile(r"(?:persistent|non-persistent)://([^/]+/[^/]+(?:/[^/]+)?)/([^/]+)", re.DOTALL)


def bundle_hash(key: str) -> int:
    """The hash of a key in a namespace, 0 to 2^32 - 1: the CRC-32 of its UTF-8 bytes, as Pulsar hashes topics.

    It is part of the protocol: a client in any language has to compute the same number.
    """
    return zlib.crc32(java_utf8(key))


class HashRange(NamedTuple):
    """Two bounds, without a check. Ranges of a namespace come from :class:`Boundaries`."""

    lower: int
    upper: int

    @property
    def name(self) -> str:
        """The name within the namespace, for example ``0x00000000_0x40000000``."""
        return f"0x{self.lower:08x}_0x{self.upper:08x}"

    @property
    def can_split(self) -> bool:
        """Whether another bound fits between the bounds (Pulsar's canSplitBundle)."""
        return self.upper - self.lower > 1


def range_of_name(name: str) -> HashRange:
    """The range with a name. An upper bound of 2^32, as at feature level 1, is read as :data:`LAST_HASH`.

    Raises:
        ConfigurationError: the text is not two bounds of eight hexadecimal digits in ascending order.
    """
    found = _RANGE_NAME.fullmatch(name)
    bounds = HashRange(int(found[1], 16), min(int(found[2], 16), LAST_HASH)) if found else HashRange(0, 0)
    if bounds.lower >= bounds.upper:
        message = f"a hash range is named like 0x00000000_0x40000000, the lower bound first, not {name!r}"
        raise ConfigurationError(message)
    return bounds


def namespace_and_range(bundle_id: str) -> tuple[str, HashRange]:
    """The namespace and the range of a bundle's id, for example ``tenant/namespace/0x00000000_0xffffffff``.

    Raises:
        ConfigurationError: the id does not end with the name of a range.
    """
    namespace, _, name = bundle_id.rpartition("/")
    return namespace, range_of_name(name)


def namespace_of_topic(topic: str) -> str:
    """The namespace in a topic's full name, such as ``tenant/namespace`` of ``persistent://tenant/namespace/orders``.

    A name with one part more has a namespace ``tenant/cluster/namespace``, as in Pulsar before version 2.

    Raises:
        ConfigurationError: the name is not full.
    """
    found = _FULL_TOPIC_NAME.fullmatch(topic)
    if found is None:
        message = f"a topic's full name is like persistent://tenant/namespace/topic, or non-persistent, not {topic!r}"
        raise ConfigurationError(message)
    return found[1]


class RangeSplit(NamedTuple):
    """A split: the namespace's boundaries after it, and the ranges that take the place of the one that was split."""

    boundaries: "Boundaries"
    children: tuple[HashRange, ...]


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The boundaries of a namespace's ranges (Pulsar's NamespaceBundles).

    Attributes:
        bounds: ascending without repetition, from 0 to :data:`LAST_HASH`.
    """

    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what does not divide the whole hash space into ranges, none of them empty."""
        ascending = all(lower < upper for lower, upper in pairwise(self.bounds))
        if len(self.bounds) < _MIN_BOUNDARIES or self.bounds[0] or self.bounds[-1] != LAST_HASH or not ascending:
            message = f"boundaries ascend from 0 to {LAST_HASH} without repetition, unlike {self.bounds!r:.200}"
            raise ConfigurationError(message)

    @property
    def ranges(self) -> tuple[HashRange, ...]:
        """The ranges, ascending."""
        return tuple(HashRange(lower, upper) for lower, upper in pairwise(self.bounds))

    def range_of_hash(self, hashed: int, *, last_hash_has_no_bundle: bool = False) -> HashRange:
        """The range that holds a hash.

        Args:
            hashed: the hash.
            last_hash_has_no_bundle: whether :data:`LAST_HASH` is outside of all ranges. Pulsar's look-up searches the
                boundaries, finds the hash equal to the last one, and fails with an IndexOutOfBoundsException.

        Raises:
            UnroutableError: no range holds the hash.
        """
        if not 0 <= hashed <= LAST_HASH or (last_hash_has_no_bundle and hashed == LAST_HASH):
            message = f"no bundle holds hash {hashed}: bundles hold 0 to {LAST_HASH - last_hash_has_no_bundle}"
            raise UnroutableError(message)
        index = min(bisect_right(self.bounds, hashed), len(self.bounds) - 1)
        return HashRange(self.bounds[index - 1], self.bounds[index])

    def range_of_topic(self, namespace: str, topic: str, *, last_hash_has_no_bundle: bool = False) -> HashRange:
        """The range of a topic by its full name (Pulsar's ConsistentHashingTopicBundleAssigner).

        Raises:
            ConfigurationError: the topic's name is not full, or the topic belongs to another namespace.
            UnroutableError: no range holds the topic's hash.
        """
        if namespace_of_topic(topic) != namespace:
            message = f"topic {topic!r} is not of namespace {namespace!r}"
            raise ConfigurationError(message)
        return self.range_of_hash(bundle_hash(topic), last_hash_has_no_bundle=last_hash_has_no_bundle)

    def has(self, target: HashRange) -> bool:
        """Whether the target is one of the ranges."""
        index = bisect_left(self.bounds, target.lower)
        return self.bounds[index : index + 2] == target

    def split(self, target: HashRange, parts: int, positions: Sequence[int] = ()) -> RangeSplit | None:
        """The split of a range (Pulsar's splitBundles); None if the target is not one of the ranges.

        Args:
            target: the range.
            parts: number of children of equal width, except that the last one takes the rest; ignored with positions.
            positions: the inner boundaries of the children, in any order.

        Raises:
            ConfigurationError: the range is too narrow, a position is not inside of it, or a child would be empty.
        """
        inner = _checked_positions(target, positions)
        if not self.has(target):
            return None
        inner = inner or _equal_steps(target, parts)
        children = _parts(target, inner)
        index = bisect_right(self.bounds, target.lower)
        return RangeSplit(Boundaries((*self.bounds[:index], *inner, *self.bounds[index:])), children)


def inner_bounds(target: HashRange, parts: int, positions: Sequence[int] = ()) -> tuple[int, ...]:
    """The inner bounds at which a range is split, ascending; arguments and errors are those of ``Boundaries.split``.

    An upper bound of 2^32, as at feature level 1, is read as :data:`LAST_HASH`, as in names. A part that began there
    would have the name of an empty range.

    Raises:
        ConfigurationError: the range is too narrow, a position is not inside of it, or a child would be empty.
    """
    read = HashRange(target.lower, min(target.upper, LAST_HASH))
    inner = _checked_positions(read, positions) or _equal_steps(read, parts)
    _parts(read, inner)
    return inner


def _checked_positions(target: HashRange, positions: Sequence[int]) -> tuple[int, ...]:
    if not target.can_split:
        message = f"range {target.name} cannot be split: its bounds are neighbours"
        raise ConfigurationError(message)
    inner = tuple(sorted(positions))
    if inner and not target.lower < inner[0] <= inner[-1] < target.upper:
        message = f"range {target.name} can be split at positions between its bounds only, not at {inner}"
        raise ConfigurationError(message)
    return inner


def _parts(target: HashRange, inner: tuple[int, ...]) -> tuple[HashRange, ...]:
    children = tuple(HashRange(*each) for each in pairwise((target.lower, *inner, target.upper)))
    if any(each.lower >= each.upper for each in children):
        message = f"range {target.name} cannot be split at {inner}: a part would be empty"
        raise ConfigurationError(message)
    return children


def equal_boundaries(count: int) -> Boundaries:
    """The boundaries of ``count`` ranges of width ``2^32 // count``; the last takes the rest (Pulsar's getBundles).

    Raises:
        ConfigurationError: the count is not 1 to 2^32 - 1. With 2^32, which Pulsar lets pass, the last range is empty.
    """
    if not 0 < count < MAX_RANGES:
        message = f"a namespace has 1 to {MAX_RANGES - 1} bundles, not {count}"
        raise ConfigurationError(message)
    width = MAX_RANGES // count
    return Boundaries((*(index * width for index in range(count)), LAST_HASH))


def _equal_steps(target: HashRange, parts: int) -> tuple[int, ...]:
    if parts < 1:
        message = f"range {target.name} cannot be split into {parts} parts"
        raise ConfigurationError(message)
    width = (target.upper - target.lower) // parts
    # With more parts than hashes the width is 0. One repeated bound is enough to show that a part would be empty.
    return tuple(target.lower + width * index for index in range(1, parts if width else 2))

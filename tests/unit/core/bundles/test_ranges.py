"""Boundaries, names and splits of hash ranges."""

import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.ranges import (
    LAST_HASH,
    Boundaries,
    HashRange,
    bundle_hash,
    equal_boundaries,
    namespace_and_range,
    namespace_of_topic,
    range_of_name,
)
from controlplane.errors import ConfigurationError, UnroutableError
from tests.vectors.hash_cases import key_with_checksum

inner_bounds = st.frozensets(st.integers(1, LAST_HASH - 1) | st.integers(1, 40), max_size=12)
all_boundaries = inner_bounds.map(lambda inner: Boundaries((0, *sorted(inner), LAST_HASH)))
hashes = st.integers(0, LAST_HASH) | st.integers(0, 45) | st.just(LAST_HASH)


@pytest.mark.parametrize("count", [*range(1, 129), 1_000])
def test_width_is_the_quotient_and_the_last_range_takes_the_rest(count: int) -> None:
    """With 7, 27, 33 or 100 ranges a rounded bound (i * 2^32 // n) differs from Pulsar's multiple of the width."""
    widths = [upper - lower for lower, upper in pairwise(equal_boundaries(count).bounds)]
    assert set(widths[:-1]) <= {2**32 // count}
    assert widths[-1] == 2**32 - 1 - (count - 1) * (2**32 // count)


@pytest.mark.parametrize("count", [0, -1, 2**32, 2**40])
def test_absurd_counts_are_refused(count: int) -> None:
    """Pulsar lets 2^32 pass, and fails on the empty range that this makes."""
    with pytest.raises(ConfigurationError, match="1 to 4294967295 bundles"):
        equal_boundaries(count)


@given(all_boundaries, hashes)
def test_exactly_one_range_holds_a_hash(boundaries: Boundaries, hashed: int) -> None:
    """Bounds belong to the range above them, and the last hash to the last range."""
    holders = [
        each
        for each in boundaries.ranges
        if each.lower <= hashed < each.upper or (hashed == LAST_HASH and each.upper == LAST_HASH)
    ]
    assert [boundaries.range_of_hash(hashed)] == holders


def test_last_hash_belongs_to_the_last_range_unless_the_switch_says_otherwise() -> None:
    """A topic with this hash has no bundle in Pulsar; here it has one."""
    topic = "persistent://t/n/" + key_with_checksum(_after("persistent://t/n/"), LAST_HASH)
    assert zlib.crc32(topic.encode()) == LAST_HASH
    boundaries = equal_boundaries(4)
    assert boundaries.range_of_topic("t/n", topic).name == "0xc0000000_0xffffffff"
    with pytest.raises(UnroutableError, match="0 to 4294967294"):
        boundaries.range_of_topic("t/n", topic, last_hash_has_no_bundle=True)
    below = boundaries.range_of_hash(LAST_HASH - 1, last_hash_has_no_bundle=True)
    assert below == HashRange(0xC0000000, LAST_HASH)


def _after(prefix: str) -> Callable[[bytes], int]:
    return lambda data: zlib.crc32(prefix.encode() + data)


@pytest.mark.parametrize("hashed", [-1, LAST_HASH + 1])
def test_what_is_no_hash_has_no_range(hashed: int) -> None:
    """A negative number would otherwise wrap around to the last range."""
    with pytest.raises(UnroutableError):
        equal_boundaries(4).range_of_hash(hashed)


def test_topic_of_another_namespace_is_refused() -> None:
    """The bundles of one namespace say nothing about another's topics."""
    boundaries = equal_boundaries(2)
    assert boundaries.range_of_topic("t/n", "persistent://t/n/x") == boundaries.range_of_hash(
        bundle_hash("persistent://t/n/x")
    )
    with pytest.raises(ConfigurationError, match="not of namespace"):
        boundaries.range_of_topic("t/n", "persistent://t/n2/x")


def test_namespace_of_a_topic() -> None:
    """Three parts name tenant, namespace and topic; four, as before version 2, also a cluster."""
    assert namespace_of_topic("non-persistent://t/n/héllo:1") == "t/n"
    assert namespace_of_topic("persistent://t/c/n/x") == "t/c/n"
    for wrong in ("x", "t/n/x", "kafka://t/n/x", "persistent://t/n", "persistent://t//x", "persistent://t/n/"):
        with pytest.raises(ConfigurationError, match="full name"):
            namespace_of_topic(wrong)


@given(all_boundaries)
def test_names_of_ranges_read_back(boundaries: Boundaries) -> None:
    """A bundle's id holds its namespace and range."""
    for each in boundaries.ranges:
        assert range_of_name(each.name) == each
        assert namespace_and_range(f"t/n/{each.name}") == ("t/n", each)


def test_last_range_of_level_1_reads_as_the_one_that_holds_the_same_hashes() -> None:
    """Its name ends with 2^32."""
    assert namespace_and_range("kv/0x80000000_0x100000000") == ("kv", HashRange(0x80000000, LAST_HASH))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "0x0_0x1",
        "0x00000000_0x100000001",
        "0x100000000_0x100000000",
        "0x40000000_0x40000000",
        "0x40000000_0x00000000",
        "0X00000000_0x1",
    ],
)
def test_other_names_are_refused(name: str) -> None:
    """Bounds have eight digits and ascend."""
    with pytest.raises(ConfigurationError, match="hash range"):
        range_of_name(name)


@pytest.mark.parametrize(
    "bounds", [(), (0,), (0, 5), (1, LAST_HASH), (0, 5, 5, LAST_HASH), (0, 7, 5, LAST_HASH), (0, 2**32)]
)
def test_boundaries_divide_the_whole_hash_space(bounds: tuple[int, ...]) -> None:
    """Gaps and overlaps would give a key no owner, or two."""
    with pytest.raises(ConfigurationError, match="ascend from 0"):
        Boundaries(bounds)


@given(all_boundaries, st.data(), st.integers(1, 9))
def test_split_replaces_one_range_by_its_parts(boundaries: Boundaries, data: st.DataObject, parts: int) -> None:
    """Parts have equal width, the last one takes the rest, and the other ranges stay."""
    target = data.draw(st.sampled_from(boundaries.ranges))
    width = (target.upper - target.lower) // parts
    if not target.can_split or not width:
        with pytest.raises(ConfigurationError):
            boundaries.split(target, parts)
        return
    split = boundaries.split(target, parts)
    assert split is not None
    assert {each.upper - each.lower for each in split.children[:-1]} <= {width}
    assert len(split.children) == parts
    assert (split.children[0].lower, split.children[-1].upper) == target
    kept = [each for each in boundaries.ranges if each != target]
    assert sorted([*kept, *split.children]) == list(split.boundaries.ranges)


def test_positions_in_any_order_are_the_inner_bounds() -> None:
    """The number of parts follows from the positions."""
    split = equal_boundaries(1).split(HashRange(0, LAST_HASH), 2, (9, 3))
    assert split is not None
    assert split.children == (HashRange(0, 3), HashRange(3, 9), HashRange(9, LAST_HASH))


@pytest.mark.parametrize(
    ("target", "parts", "positions", "said"),
    [
        (HashRange(5, 6), 2, (), "neighbours"),
        (HashRange(6, 6), 2, (), "neighbours"),
        (HashRange(0, 5), 2, (0,), "between its bounds"),
        (HashRange(0, 5), 2, (5,), "between its bounds"),
        (HashRange(0, 5), 2, (3, 3), "empty"),
        (HashRange(0, 5), 6, (), "empty"),
        (HashRange(0, 5), 10**12, (), "empty"),
        (HashRange(0, 5), 0, (), "0 parts"),
    ],
)
def test_refused_splits(target: HashRange, parts: int, positions: tuple[int, ...], said: str) -> None:
    """A part without hashes would be a bundle that serves nothing."""
    with pytest.raises(ConfigurationError, match=said):
        Boundaries((0, 5, 6, LAST_HASH)).split(target, parts, positions)


def test_unknown_range_is_not_found_after_its_positions_were_checked() -> None:
    """A stale report names a range that was split since; positions are checked before the look-up."""
    boundaries = equal_boundaries(4)
    assert boundaries.split(HashRange(0, LAST_HASH), 2) is None
    assert boundaries.split(HashRange(1, 0x40000000), 2, (7, 7)) is None
    assert boundaries.split(HashRange(0, 0x80000000), 2) is None
    with pytest.raises(ConfigurationError, match="between its bounds"):
        boundaries.split(HashRange(7, 9), 2, (9,))

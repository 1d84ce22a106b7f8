"""Where the four algorithms split a bundle."""

import math
from functools import reduce
from itertools import pairwise
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.ranges import LAST_HASH, HashRange, bundle_hash
from controlplane.core.bundles.splitting.algorithms import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
    TrafficSplitSettings,
)
from controlplane.core.bundles.splitting.contract import SplitPositions, SplitRequest
from controlplane.core.bundles.splitting.named_algorithms import SplitAlgorithms
from controlplane.errors import ConfigurationError

WHOLE = HashRange(0, LAST_HASH)
TOPICS = tuple(sorted((f"persistent://t/n/{number}" for number in range(12)), key=bundle_hash))
HASHES = tuple(map(bundle_hash, TOPICS))
PULSAR = TrafficSplitSettings(max_message_rate_per_s=100, max_bandwidth_mib_per_s=1, accepts_any_rate=True)


def load(rate: float = 0.0, throughput: float = 0.0) -> MessageLoad:
    """Traffic in one direction."""
    return MessageLoad(throughput, 0.0, rate, 0.0)


def busy(*rates: float) -> SplitRequest:
    """The first topics by ascending hash, with these rates."""
    topics = TOPICS[: len(rates)]
    return SplitRequest(WHOLE, topics, dict(zip(topics, map(load, rates), strict=True)))


def by_traffic(request: SplitRequest, settings: TrafficSplitSettings = PULSAR) -> tuple[int, ...]:
    """Positions of a split by traffic."""
    return FlowOrQpsEquallyDivide(settings).choose(request).positions


def between(index: int) -> int:
    """The position that separates a topic from the next one."""
    return HASHES[index] + (HASHES[index + 1] - HASHES[index]) // 2 + 1


def test_range_is_halved() -> None:
    """Whatever topics the bundle has; the middle is rounded down."""
    assert RangeEquallyDivide().choose(SplitRequest(HashRange(3, 8))).positions == (5,)
    assert RangeEquallyDivide().choose(SplitRequest(HashRange(0xC0000000, LAST_HASH))).positions == (0xDFFFFFFF,)


@given(st.permutations(TOPICS), st.integers(2, 12))
def test_topics_are_halved(topics: list[str], count: int) -> None:
    """Of an odd number the upper part takes one more."""
    chosen = TopicCountEquallyDivide().choose(SplitRequest(WHOLE, tuple(topics[:count])))
    hashes = sorted(bundle_hash(each) for each in topics[:count])
    (position,) = chosen.positions
    assert hashes[count // 2 - 1] <= position < hashes[count // 2]
    assert f"topics {count // 2} and {count // 2 + 1} of {count}" in chosen.reason


def test_specified_positions_are_those_inside() -> None:
    """A repeated one stays: the split refuses it."""
    request = SplitRequest(HashRange(4, 9), TOPICS[:2], positions=(8, 4, 5, 9, 5, 2**40))
    assert SpecifiedPositionsDivide().choose(request).positions == (5, 5, 8)
    with pytest.raises(ConfigurationError, match="none is given"):
        SpecifiedPositionsDivide().choose(SplitRequest(WHOLE, TOPICS, is_forced=True))


def test_specified_positions_need_two_topics_unless_forced() -> None:
    """An operator may prepare an empty namespace."""
    for topics in ((), TOPICS[:1]):
        assert SpecifiedPositionsDivide().choose(SplitRequest(HashRange(4, 9), topics, positions=(5,))).positions == ()
        forced = SplitRequest(HashRange(4, 9), topics, positions=(5,), is_forced=True)
        assert SpecifiedPositionsDivide().choose(forced).positions == (5,)


@pytest.mark.parametrize("topics", [(), TOPICS[:1]])
def test_fewer_than_two_topics_are_not_split_by_topics(topics: tuple[str, ...]) -> None:
    """A single hot topic cannot be divided, and would be split for ever."""
    request = SplitRequest(WHOLE, topics, dict.fromkeys(TOPICS, load(10**6)))
    for algorithm in (TopicCountEquallyDivide(), FlowOrQpsEquallyDivide()):
        assert algorithm.choose(request) == SplitPositions(
            (), f"the bundle has {len(topics)} known topics, fewer than 2"
        )


def test_parts_stay_within_the_limits_of_traffic() -> None:
    """A position comes before the topic that would exceed a limit; the next part begins with that topic."""
    assert by_traffic(busy(60, 40, 1, 99, 100)) == (between(1), between(3))
    assert by_traffic(busy(60, 41, 60)) == (between(0), between(1))


def test_traffic_has_to_reach_the_threshold_in_one_of_the_two() -> None:
    """110 of 100 messages/s is enough, less is not; the same in bytes."""
    assert by_traffic(busy(60, 49.99)) == ()
    assert by_traffic(busy(60, 50.0)) == ()  # 110 is below 100 * (1 + 0.1) in binary numbers
    assert by_traffic(busy(60, 50.1)) == (between(0),)
    exact = TrafficSplitSettings(max_message_rate_per_s=100, max_bandwidth_mib_per_s=1, excess_threshold_percent=50)
    assert by_traffic(busy(90, 60), exact) == (between(0),)
    assert by_traffic(busy(90, 59), exact) == ()
    request = SplitRequest(WHOLE, TOPICS[:2], dict.fromkeys(TOPICS, load(0.0, 0.75 * 1024 * 1024)))
    assert by_traffic(request, exact) == (between(0),)


def test_idle_and_unmeasured_topics_do_not_count() -> None:
    """Two topics with traffic have to be left."""
    assert by_traffic(busy(500, 0, 500)) == (HASHES[0] + (HASHES[2] - HASHES[0]) // 2 + 1,)
    assert by_traffic(SplitRequest(WHOLE, TOPICS, {TOPICS[3]: load(500)})) == ()
    assert by_traffic(busy(500, 0, 0)) == ()


def test_repeated_topic_counts_once_among_the_topics_and_twice_in_the_sums() -> None:
    """As in Pulsar, which keeps the loads by hash and the hashes in a list."""
    assert by_traffic(SplitRequest(WHOLE, (TOPICS[0], TOPICS[0]), {TOPICS[0]: load(500)})) == ()
    topics = (TOPICS[0], TOPICS[0], TOPICS[1])
    assert by_traffic(SplitRequest(WHOLE, topics, dict.fromkeys(TOPICS, load(60)))) == (HASHES[0] + 1, between(0))


@pytest.mark.parametrize("rate", [math.nan, math.inf, -200.0])
def test_rates_that_cannot_be(rate: float) -> None:
    """Ours takes the topic for one without a load; Pulsar's switch lets the rate into the sums."""
    ours = TrafficSplitSettings(max_message_rate_per_s=100, max_bandwidth_mib_per_s=1)
    request = busy(60, rate, 60)
    traffic = dict(request.topic_loads) | {TOPICS[1]: load(rate, 10.0)}
    request = SplitRequest(WHOLE, request.topics, traffic)
    without = SplitRequest(WHOLE, (TOPICS[0], TOPICS[2]), traffic)
    assert by_traffic(request, ours) == by_traffic(without, ours) != ()
    expected = {"nan": (), "inf": (between(0), between(1)), "-200.0": ()}
    assert by_traffic(request) == expected[str(rate)]


@given(st.lists(st.floats(0.01, 300), min_size=2, max_size=12))
def test_no_part_of_several_topics_exceeds_the_limit(rates: list[float]) -> None:
    """And a limit that is exceeded beyond the threshold is answered with a split."""
    positions = by_traffic(busy(*rates))
    assert list(positions) == sorted(positions)
    bounds = (0, *positions, LAST_HASH)
    for lower, upper in pairwise(bounds):
        part = [rate for rate, hashed in zip(rates, HASHES, strict=False) if lower <= hashed < upper]
        assert len(part) < 2 or sum(part) <= 100 + 1e-9 or not positions
    assert bool(positions) is (reduce(add, rates) >= 100 * (1 + 0.1))


@pytest.mark.parametrize("limits", [(-1, 1, 1), (1, -1, 1), (1, 1, -1), (math.nan, 1, 1), (1, math.inf, 1)])
def test_limits_that_no_traffic_keeps_are_refused(limits: tuple[float, float, float]) -> None:
    """With them every topic would get a part of its own, or none."""
    with pytest.raises(ConfigurationError, match="0 or greater"):
        TrafficSplitSettings(*limits)


class Thirds:
    """A user's own algorithm."""

    name = "thirds"

    def choose(self, request: SplitRequest) -> SplitPositions:
        """Three parts of the range."""
        lower, upper = request.bundle
        third = (upper - lower) // 3
        return SplitPositions((lower + third, upper - third), "thirds")


def test_algorithms_by_name() -> None:
    """A wrong name is refused where it is given; a name that was accepted before gets the default."""
    algorithms = SplitAlgorithms({"thirds": Thirds(), "range_equally_divide": RangeEquallyDivide()}, "thirds")
    for name, algorithm in algorithms.by_name.items():
        assert algorithms.configured(name) is algorithms.executed(name) is algorithm
    with pytest.raises(ConfigurationError, match=r"'halves' is not known here; known are range_equally_divide, thirds"):
        algorithms.configured("halves")
    assert algorithms.executed("halves").name == "thirds"

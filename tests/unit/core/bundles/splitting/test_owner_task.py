"""The bundles that an owner splits itself: one test for each rule, as there are no recorded answers."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.splitting.algorithms import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
    TrafficSplitSettings,
)
from controlplane.core.bundles.splitting.contract import SplitAlgorithm, SplitPositions, SplitRequest
from controlplane.core.bundles.splitting.limits import SplitLimit
from controlplane.core.bundles.splitting.owner_task import (
    NO_HITS,
    OwnerSplits,
    OwnerSplitSettings,
    OwnerView,
    Waiting,
    find_owner_splits,
)
from controlplane.errors import ConfigurationError

FIRST = "t/n/0x00000000_0x40000000"
SECOND = "t/n/0x40000000_0x80000000"
DEFAULTS = OwnerSplitSettings()
AT_ONCE = OwnerSplitSettings(max_hits=0)


def sample(bundle_id: str, topics: int = 1_001) -> BundleLoad:
    """A sample that exceeds the limit of topics only, if any."""
    return BundleLoad(bundle_id, 0.0, 0.0, 0.0, 0.0, topics, 0, 0, 0)


def owner(*samples: BundleLoad) -> OwnerView:
    """An owner with these bundles in namespaces of four bundles."""
    ids = [each.bundle_id for each in samples]
    return OwnerView(
        "a",
        {each.bundle_id: each for each in samples},
        frozenset(ids),
        bundle_counts={each.rpartition("/")[0]: 4 for each in ids},
    )


def search(
    view: OwnerView,
    hits: Mapping[str, int] = NO_HITS,
    settings: OwnerSplitSettings = AT_ONCE,
    algorithm: SplitAlgorithm | None = None,
) -> OwnerSplits:
    """A round with halves of ranges."""
    return find_owner_splits(view, hits, algorithm or RangeEquallyDivide(), settings)


def split_ids(found: OwnerSplits) -> list[str]:
    """The bundles to split."""
    return [each.bundle_id for each in found.splits]


def test_bundle_is_split_in_the_fourth_round_in_a_row() -> None:
    """More hits than three; the split clears them."""
    view, hits = owner(sample(FIRST)), NO_HITS
    for number in (1, 2, 3):
        found = search(view, hits, DEFAULTS)
        assert (found.splits, found.waiting, found.hits) == ((), (), {FIRST: number})
        hits = found.hits
    found = search(view, hits, DEFAULTS)
    (split,) = found.splits
    assert split.children == (HashRange(0, 0x20000000), HashRange(0x20000000, 0x40000000))
    assert (split.hits, split.exceeded.limit, split.exceeded.measured) == (4, SplitLimit.TOPICS, 1_001)
    assert found.hits == {}


def test_round_within_the_limits_clears_the_hits() -> None:
    """The rounds have to follow each other."""
    assert search(owner(sample(FIRST, topics=1_000)), {FIRST: 3}, DEFAULTS).hits == {}


def test_hits_of_bundles_without_a_sample_are_dropped() -> None:
    """A bundle that comes back starts again."""
    assert search(owner(sample(FIRST, topics=2)), {SECOND: 3}, DEFAULTS).hits == {}


def test_skipped_bundles_keep_their_hits() -> None:
    """Too few topics, another owner or too narrow a range: the round says nothing about the load."""
    narrow = "t/n/0x00000005_0x00000006"
    view = replace(owner(sample(FIRST, topics=1), sample(SECOND), sample(narrow)), owned=frozenset((FIRST, narrow)))
    found = search(view, dict.fromkeys((FIRST, SECOND, narrow), 3), DEFAULTS)
    assert found.hits == dict.fromkeys((FIRST, SECOND, narrow), 3)
    assert found.splits == ()
    assert [(each.bundle_id, each.waiting) for each in found.waiting] == [(narrow, Waiting.TOO_NARROW)]


BUSY = sample(FIRST, topics=2)
MANY_SESSIONS = BUSY._replace(consumer_count=500, producer_count=501)
HIGH_RATE = BUSY._replace(message_rate_in_per_s=15_000.0, message_rate_out_per_s=15_000.5)
HIGH_THROUGHPUT = BUSY._replace(
    throughput_in_bytes_per_s=50.0 * BYTES_PER_MIB, throughput_out_bytes_per_s=50.0 * BYTES_PER_MIB + 1
)


@pytest.mark.parametrize(
    ("latest", "limit"),
    [
        (MANY_SESSIONS._replace(topic_count=1_001, message_rate_in_per_s=1e9), SplitLimit.TOPICS),
        (MANY_SESSIONS._replace(throughput_in_bytes_per_s=1e12), SplitLimit.SESSIONS),
        (HIGH_RATE._replace(throughput_out_bytes_per_s=1e12), SplitLimit.MESSAGE_RATE),
        (HIGH_THROUGHPUT, SplitLimit.BANDWIDTH),
    ],
)
def test_reason_is_the_first_limit_exceeded(latest: BundleLoad, limit: SplitLimit) -> None:
    """Topics, sessions, message rate, bandwidth, each of the latest sample."""
    (split,) = search(owner(latest)).splits
    assert split.exceeded.limit is limit


def test_limits_are_strict() -> None:
    """A bundle at all limits stays whole."""
    edge = BundleLoad(FIRST, 15_000.0, 15_000.0, 50.0 * BYTES_PER_MIB, 50.0 * BYTES_PER_MIB, 1_000, 400, 600, 0)
    assert search(owner(edge)).splits == ()


def test_bundle_of_level_1_is_split_with_the_others() -> None:
    """Its id ends with 2^32; its parts have Pulsar's bounds."""
    last = "t/n/0xc0000000_0x100000000"
    found = search(owner(sample(FIRST), sample(last)))
    assert split_ids(found) == [FIRST, last]
    assert found.splits[1].children == (HashRange(0xC0000000, 0xDFFFFFFF), HashRange(0xDFFFFFFF, 0xFFFFFFFF))


def test_full_namespace_waits() -> None:
    """Splits accepted in the round count; hits stay, so that the bundle is split when there is room."""
    view = replace(owner(sample(FIRST), sample(SECOND)), bundle_counts={"t/n": 127})
    found = search(view)
    assert split_ids(found) == [FIRST]
    ((bundle_id, waiting, reason),) = found.waiting
    assert (bundle_id, waiting) == (SECOND, Waiting.TOO_MANY_BUNDLES)
    assert "128 of at most 128" in reason
    assert found.hits == {SECOND: 1}


def test_namespace_without_a_count_fails() -> None:
    """Its cap cannot be checked."""
    found = search(replace(owner(sample(FIRST)), bundle_counts={}))
    assert [each.waiting for each in found.waiting] == [Waiting.UNKNOWN_COUNT]


@pytest.mark.parametrize(
    ("splitting", "waits"),
    [
        ("t/n/0x00000000_0x80000000", True),
        ("t/n/0x20000000_0x40000000", True),
        (FIRST, True),
        ("t/n/0x40000000_0x80000000", False),
        ("t/n/0x10000000_0x30000000", False),
        ("t/m/0x00000000_0x40000000", False),
        ("t/n2/0x00000000_0x40000000", False),
    ],
)
def test_bundle_waits_for_one_being_split_that_shares_a_bound(splitting: str, waits: bool) -> None:
    """That one is itself, or its parent, whose record is not gone yet."""
    found = search(replace(owner(sample(FIRST)), splitting=(splitting,)))
    assert split_ids(found) == ([] if waits else [FIRST])
    assert [each.waiting for each in found.waiting] == ([Waiting.NEIGHBOUR_SPLITS] if waits else [])


def test_pulsar_compares_the_beginning_of_the_namespace() -> None:
    """A bundle of t/n waits for one of t/n2, and not the other way round."""
    settings = OwnerSplitSettings(max_hits=0, compares_namespaces_by_prefix=True)
    longer = FIRST.replace("t/n", "t/n2")
    assert split_ids(search(replace(owner(sample(FIRST)), splitting=(longer,)), settings=settings)) == []
    assert split_ids(search(replace(owner(sample(longer)), splitting=(FIRST,)), settings=settings)) == [longer]
    assert split_ids(search(replace(owner(sample(longer)), splitting=(longer,)), settings=settings)) == []


class Twice:
    """An algorithm that chooses two positions."""

    name = "twice"

    def choose(self, request: SplitRequest) -> SplitPositions:
        """Two positions inside."""
        return SplitPositions((request.bundle.lower + 1, request.bundle.lower + 2), "two")


class Edge:
    """An algorithm that chooses a bound."""

    name = "edge"

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def choose(self, request: SplitRequest) -> SplitPositions:
        """The lower bound, or a number beyond it."""
        return SplitPositions((request.bundle.lower + self.offset,), "edge")


@pytest.mark.parametrize(
    "algorithm",
    [TopicCountEquallyDivide(), SpecifiedPositionsDivide(), Twice(), Edge(0), Edge(0x40000000), Edge(-1)],
    ids=lambda each: each.name,
)
def test_exactly_one_position_inside_is_needed(algorithm: SplitAlgorithm) -> None:
    """Otherwise the decision fails, and the hits go on."""
    found = search(owner(sample(FIRST)), {FIRST: 3}, DEFAULTS, algorithm)
    assert found.splits == ()
    assert [each.waiting for each in found.waiting] == [Waiting.NO_USABLE_POSITION]
    assert found.waiting[0].reason.startswith(algorithm.name)
    assert found.hits == {FIRST: 4}


def test_algorithm_sees_topics_and_their_loads() -> None:
    """Positions by topics need them."""
    topics = ("persistent://t/n/topic-128538", "persistent://t/n/topic-682967", "persistent://t/n/topic-78498")
    whole = "t/n/0x00000000_0xffffffff"
    view = replace(owner(sample(whole)), topics={whole: topics})
    (split,) = search(view, algorithm=TopicCountEquallyDivide()).splits
    assert split.children[0].upper == 2423100264
    by_traffic = FlowOrQpsEquallyDivide(TrafficSplitSettings())
    assert "0 of 3 topics have traffic" in search(view, algorithm=by_traffic).waiting[0].reason


def test_round_ends_with_its_last_split() -> None:
    """Bundles behind it are not looked at: their hits neither grow nor go."""
    ids = [f"t/n{number}/0x00000000_0x40000000" for number in range(12)]
    view = owner(*(sample(each) for each in ids))
    found = search(view, {ids[11]: 7})
    assert split_ids(found) == ids[:10]
    assert found.hits == {ids[11]: 7}
    assert split_ids(search(view, settings=OwnerSplitSettings(max_hits=0, max_splits_per_round=12))) == ids


@pytest.mark.parametrize(
    "make",
    [
        lambda: OwnerSplitSettings(max_hits=-1),
        lambda: OwnerSplitSettings(max_splits_per_round=0),
        lambda: OwnerSplitSettings(max_topics=-1),
    ],
)
def test_settings_without_sense_are_refused(make: Callable[[], OwnerSplitSettings]) -> None:
    """With them every bundle would be split, or none."""
    with pytest.raises(ConfigurationError):
        make()


@given(st.lists(st.sampled_from([0, 2, 1_001, 5_000]), max_size=20), st.integers(0, 3), st.integers(1, 5))
def test_rounds_repeat_and_leave_the_memory_alone(topics: list[int], max_hits: int, max_splits: int) -> None:
    """Equal inputs give equal results, and no more bundles than allowed are split."""
    samples = [sample(f"t/n/0x{index:08x}_0x{index + 4:08x}", count) for index, count in enumerate(topics)]
    settings = OwnerSplitSettings(max_hits=max_hits, max_splits_per_round=max_splits)
    before = {each.bundle_id: 2 for each in samples}
    kept = dict(before)
    first, second = (search(owner(*samples), before, settings) for _ in range(2))
    assert first == second
    assert before == kept
    assert len(first.splits) <= max_splits
    assert all(each.exceeded.measured > 1_000 and each.hits > max_hits for each in first.splits)

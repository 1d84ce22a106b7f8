"""What the leader splits, and what a split changes (spec 3.3 has vectors for the choice only)."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    BundleAverages,
    MessageLoad,
    TimeAverage,
)
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import CONTROLPLANE
from controlplane.core.bundles.ranges import LAST_HASH, Boundaries, HashRange, equal_boundaries
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.execution import (
    NoSplit,
    NoSplitCause,
    SplitExecutionSettings,
    SplitPlan,
    UnloadConsent,
    plan_split,
    without_split_bundles,
)
from controlplane.core.bundles.splitting.leader_task import bundles_to_split
from controlplane.core.bundles.splitting.limits import SplitLimit, SplitSettings

ALGORITHMS = chosen_rules(compose(CONTROLPLANE)).split_algorithms
FIRST_QUARTER = HashRange(0, 0x40000000)
AGREED = UnloadConsent(isolation=True, anti_affinity=True)
DEFAULTS = SplitExecutionSettings()


def sample(bundle_id: str, topics: int = 1_001) -> BundleLoad:
    """A sample that exceeds the limit of topics only."""
    return BundleLoad(bundle_id, 0.0, 0.0, 0.0, 0.0, topics, 0, 0, 0)


def history(rate: float) -> BundleHistory:
    """Averages with a long-term rate."""
    averages = BundleAverages(
        TimeAverage(SHORT_TERM_SAMPLES, 1, MessageLoad(0.0, 0.0, 0.0, 0.0)),
        TimeAverage(LONG_TERM_SAMPLES, 1, MessageLoad(0.0, 0.0, rate, 0.0)),
    )
    return BundleHistory(averages, 2)


def view(**bundles_by_node: list[BundleLoad]) -> LoadView:
    """Nodes with the samples of their bundles."""
    return LoadView(
        {
            node_id: NodeView(NodeLoad(node_id, stats={each.bundle_id: each for each in bundles}))
            for node_id, bundles in bundles_by_node.items()
        }
    )


def test_one_known_node_or_the_setting_stops_splits() -> None:
    """With one node there is nobody to take a part."""
    one = view(a=[sample("t/n/x")])
    two = view(a=[sample("t/n/x")], b=[])
    assert bundles_to_split(one, {"t/n": 1}, SplitSettings()) == ()
    (choice,) = bundles_to_split(two, {"t/n": 1}, SplitSettings())
    assert (choice.bundle.bundle_id, choice.bundle.node_id) == ("t/n/x", "a")
    assert [each.limit for each in choice.exceeded] == [SplitLimit.TOPICS]
    assert bundles_to_split(two, {"t/n": 1}, SplitSettings(is_enabled=False)) == ()


def test_rates_are_long_term_averages_and_topics_the_latest() -> None:
    """A bundle without averages has no rate, however busy its sample."""
    busy = sample("t/n/x", topics=2)._replace(message_rate_in_per_s=10**6)
    loads = view(a=[busy], b=[])
    assert bundles_to_split(loads, {"t/n": 1}, SplitSettings()) == ()
    known = replace(loads, bundles={"t/n/x": history(30_000.5)})
    assert len(bundles_to_split(known, {"t/n": 1}, SplitSettings())) == 1
    assert bundles_to_split(replace(loads, bundles={"t/n/x": history(30_000)}), {"t/n": 1}, SplitSettings()) == ()


def test_bundle_of_two_reports_is_split_once() -> None:
    """The last reporter is named, and the second report takes a place of the namespace's cap, as in Pulsar's map."""
    loads = view(a=[sample("t/n/x")], b=[sample("t/n/x"), sample("t/n/y")])
    chosen = bundles_to_split(loads, {"t/n": 126}, SplitSettings())
    assert [(each.bundle.bundle_id, each.bundle.node_id) for each in chosen] == [("t/n/x", "b")]


def test_namespace_without_a_count_is_skipped() -> None:
    """Its cap cannot be checked."""
    assert bundles_to_split(view(a=[sample("t/n/x")], b=[]), {"t/m": 1}, SplitSettings()) == ()


def test_pulsar_2_splits_bundles_of_one_topic() -> None:
    """Version 4 does not: no split makes such a bundle smaller. The node that reports it stays too busy."""
    one_topic = sample("t/n/x", topics=1)._replace(consumer_count=1_001)
    loads = view(a=[one_topic], b=[])
    assert bundles_to_split(loads, {"t/n": 1}, SplitSettings()) == ()
    assert len(bundles_to_split(loads, {"t/n": 1}, SplitSettings(min_topics=0))) == 1


@pytest.mark.parametrize("max_sessions", [0, -1])
def test_pulsar_2_cannot_switch_the_limit_of_sessions_off(max_sessions: int) -> None:
    """Version 4 takes 0 or less for no limit."""
    loads = view(a=[sample("t/n/x", topics=2)._replace(producer_count=1)], b=[])
    settings = SplitSettings(max_sessions=max_sessions)
    assert bundles_to_split(loads, {"t/n": 1}, settings) == ()
    (choice,) = bundles_to_split(loads, {"t/n": 1}, replace(settings, limits_sessions_below_one=True))
    assert [(each.limit, each.allowed) for each in choice.exceeded] == [(SplitLimit.SESSIONS, max_sessions)]


def test_pulsar_2_does_not_count_the_splits_of_the_round() -> None:
    """Version 4 stops at the cap, however many bundles of a namespace are over a limit."""
    loads = view(a=[sample("t/n/x"), sample("t/n/y"), sample("t/n/z")], b=[])
    for ignores, count in ((False, 1), (True, 3)):
        settings = SplitSettings(ignores_splits_of_the_round=ignores)
        assert len(bundles_to_split(loads, {"t/n": 127}, settings)) == count
        assert bundles_to_split(loads, {"t/n": 128}, settings) == ()


@pytest.mark.parametrize("width", [0, 1])
def test_narrow_bundle_is_skipped(width: int) -> None:
    """No position fits, and its averages stay."""
    bundle = HashRange(7, 7 + width)
    made = plan_split(equal_boundaries(1), SplitRequest(bundle), ALGORITHMS, "", AGREED, DEFAULTS)
    assert isinstance(made, NoSplit)
    assert (made.cause, made.forgets_load) == (NoSplitCause.TOO_NARROW, False)


def test_bundle_of_width_two_is_split() -> None:
    """Two hashes, two parts."""
    boundaries = Boundaries((0, 2, LAST_HASH))
    made = plan_split(boundaries, SplitRequest(HashRange(0, 2)), ALGORITHMS, "", AGREED, DEFAULTS)
    assert isinstance(made, SplitPlan)
    assert made.children == (HashRange(0, 1), HashRange(1, 2))


def test_vanished_bundle_is_skipped() -> None:
    """A stale report names a bundle that was split since."""
    split = equal_boundaries(8)
    made = plan_split(split, SplitRequest(FIRST_QUARTER), ALGORITHMS, "", AGREED, DEFAULTS)
    assert isinstance(made, NoSplit)
    assert (made.cause, made.forgets_load) == (NoSplitCause.VANISHED, False)


def test_unknown_algorithm_is_replaced_by_the_default() -> None:
    """The plan names the one that chose."""
    made = plan_split(equal_boundaries(4), SplitRequest(FIRST_QUARTER), ALGORITHMS, "lost", AGREED, DEFAULTS)
    assert isinstance(made, SplitPlan)
    assert made.algorithm == "range_equally_divide"
    assert made.children == (HashRange(0, 0x20000000), HashRange(0x20000000, 0x40000000))
    assert made.boundaries.bounds == (0, 0x20000000, 0x40000000, 0x80000000, 0xC0000000, LAST_HASH)
    assert made.forgets_load


@pytest.mark.parametrize(
    ("name", "request_", "cause"),
    [
        ("topic_count_equally_divide", SplitRequest(FIRST_QUARTER), NoSplitCause.NO_POSITION),
        ("specified_positions_divide", SplitRequest(FIRST_QUARTER), NoSplitCause.REFUSED),
        (
            "specified_positions_divide",
            SplitRequest(FIRST_QUARTER, positions=(5, 5), is_forced=True),
            NoSplitCause.REFUSED,
        ),
    ],
)
def test_split_without_effect_still_forgets_the_averages(
    name: str, request_: SplitRequest, cause: NoSplitCause
) -> None:
    """The leader drops them before it asks, so that the bundle is not chosen again at once."""
    made = plan_split(equal_boundaries(4), request_, ALGORITHMS, name, AGREED, DEFAULTS)
    assert isinstance(made, NoSplit)
    assert (made.cause, made.forgets_load) == (cause, True)
    assert made.reason.startswith(name)


def test_position_outside_of_the_bundle_is_refused() -> None:
    """A stale list of topics can name hashes that the bundle does not hold any more."""
    topics = ("persistent://t/n/topic-128538", "persistent://t/n/topic-682967", "persistent://t/n/topic-78498")
    request = SplitRequest(FIRST_QUARTER, topics)
    made = plan_split(equal_boundaries(4), request, ALGORITHMS, "topic_count_equally_divide", AGREED, DEFAULTS)
    assert isinstance(made, NoSplit)
    assert made.cause is NoSplitCause.REFUSED
    assert "between its bounds" in made.reason


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("isolation", [False, True])
@pytest.mark.parametrize("anti_affinity", [False, True])
def test_children_are_unloaded_iff_setting_and_policies_agree(
    wanted: bool, isolation: bool, anti_affinity: bool
) -> None:
    """Pulsar 2 asks the setting alone."""
    request = SplitRequest(FIRST_QUARTER)
    consent = UnloadConsent(isolation, anti_affinity)
    for alone in (False, True):
        settings = SplitExecutionSettings(unloads_children=wanted, unloads_by_setting_alone=alone)
        made = plan_split(equal_boundaries(4), request, ALGORITHMS, "", consent, settings)
        assert isinstance(made, SplitPlan)
        assert made.unloads_children is (wanted and (alone or (isolation and anti_affinity)))


def test_split_bundles_are_forgotten() -> None:
    """The averages of all, and of the samples only those that the leader took itself."""
    loads = view(a=[sample("t/n/x"), sample("t/n/y")], b=[sample("t/n/x")])
    loads = replace(loads, bundles={"t/n/x": history(1.0), "t/n/y": history(2.0)})
    for leader_id, left in (("a", ["t/n/y"]), (None, ["t/n/x", "t/n/y"]), ("gone", ["t/n/x", "t/n/y"])):
        after = without_split_bundles(loads, ["t/n/x", "t/n/unknown"], leader_id)
        assert list(after.bundles) == ["t/n/y"]
        assert list(after.nodes["a"].load.stats) == left
        assert list(after.nodes["b"].load.stats) == ["t/n/x"]
    assert list(loads.bundles) == ["t/n/x", "t/n/y"]

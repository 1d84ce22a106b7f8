"""What the leader makes of reports: samples, sums, preallocations, and what it forgets."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import (
    UNSEEN_BUNDLE,
    UNSEEN_LOAD,
    MessageLoad,
    full_averages,
    message_load,
)
from controlplane.core.bundles.load.leader_fold import (
    FoldSettings,
    LeaderLoads,
    PreallocationEnd,
    Seeds,
    bundles_to_store,
    fold,
)
from controlplane.core.bundles.load.measured_node import measured
from controlplane.core.bundles.load.view import BundleHistory, NodeLoad, Resources
from controlplane.core.bundles.reports import BundleLoad

OURS = FoldSettings()
PULSAR_4 = FoldSettings(
    samples_unchanged_reports=True,
    samples_implausible_loads=True,
    preallocation_end=PreallocationEnd.REPORTED_OR_NOT_OWNED_BY_LEADER,
)
PULSAR_2 = FoldSettings(
    samples_unchanged_reports=True, preallocation_end=PreallocationEnd.ANY_REPORTED, keeps_unreported_bundles=True
)
HISTORY = BundleHistory(UNSEEN_BUNDLE)


def sample(bundle_id: str, throughput: float = 1e6, topics: int = 1) -> BundleLoad:
    """A bundle's sample."""
    return BundleLoad(bundle_id, 10.0, 20.0, throughput, throughput, topics, 0, 0, 0)


def report(node_id: str, *bundles: str, at_ms: int = 1) -> NodeLoad:
    """A report of a node."""
    return replace(measured(NodeLoad(node_id), Resources(), map(sample, bundles)), updated_at_ms=at_ms)


def reports(*given: NodeLoad) -> Mapping[str, NodeLoad]:
    """Reports by node."""
    return {each.node_id: each for each in given}


def counts(loads: LeaderLoads) -> dict[str, int]:
    """The number of samples by bundle."""
    return {name: each.averages.long_term.sample_count for name, each in loads.bundles.items()}


def test_every_fold_samples_every_bundle_only_in_pulsar() -> None:
    """Quirk A: one node's report ages the averages of all others."""
    first = reports(report("a", "x"), report("b", "y"))
    second = reports(report("a", "x", at_ms=2), report("b", "y"))
    for settings, expected in ((PULSAR_4, {"x": 2, "y": 2}), (OURS, {"x": 2, "y": 1})):
        loads = fold(LeaderLoads(), first, settings).loads
        assert counts(loads) == {"x": 1, "y": 1}
        assert counts(fold(loads, second, settings).loads) == expected


def test_nodes_keep_the_order_in_which_they_appeared() -> None:
    """Sums and ties depend on it, so a new report must not move its node."""
    loads = fold(LeaderLoads(), reports(report("b"), report("a")), OURS).loads
    loads = fold(loads, reports(report("c"), report("a"), report("b")), OURS).loads
    assert tuple(loads.nodes) == ("b", "a", "c")


def test_dead_node_is_forgotten_with_its_preallocations() -> None:
    """A bundle that was given to it has to be given to another node."""
    loads = fold(LeaderLoads(), reports(report("a", "x"), report("b", "y")), OURS).loads
    loads = loads.preallocated("new", "b", HISTORY).preallocated("other", "a", HISTORY).preallocated("z", "c", HISTORY)
    folded = fold(loads, reports(report("a", "x")), OURS)
    assert folded.dropped_nodes == ("b",)
    assert folded.loads.node_of_preallocated == {"other": "a"}
    assert fold(loads, reports(report("a", "x")), PULSAR_4).loads.node_of_preallocated == {"z": "c"}
    assert tuple(folded.loads.nodes) == ("a",)
    assert folded.dropped_bundles == ("y",)


def test_preallocation_ends_when_the_node_reports_the_bundle() -> None:
    """Under our own policy, and only then."""
    loads = fold(LeaderLoads(), reports(report("a", "x")), OURS).loads.preallocated("new", "a", HISTORY)
    loads = loads.preallocated("late", "a", HISTORY)
    kept = fold(loads, reports(report("a", "x")), OURS).loads
    assert kept.nodes["a"].preallocated.keys() == kept.node_of_preallocated.keys() == {"new", "late"}
    ended = fold(loads, reports(report("a", "x", "new", at_ms=2)), OURS).loads
    assert ended.nodes["a"].preallocated.keys() == {"late"}
    assert ended.node_of_preallocated == {"late": "a"}


def test_preallocation_to_a_node_without_a_report_ends_like_any_other() -> None:
    """When the node reports the bundle, and when it dies before it has reported anything; Pulsar's has no end then."""
    loads = LeaderLoads().preallocated("new", "late", HISTORY)
    for settings, kept in ((OURS, {}), (PULSAR_4, {"new": "late"})):
        assert fold(loads, reports(report("a")), settings).loads.node_of_preallocated == kept
    waiting = fold(loads, reports(report("a")), OURS, registered=frozenset({"a", "late"})).loads
    assert waiting.node_of_preallocated == {"new": "late"}
    assert fold(waiting, reports(report("late")), OURS).loads.node_of_preallocated == {"new": "late"}
    reported = fold(waiting, reports(report("late", "new")), OURS).loads
    assert reported.node_of_preallocated == {}
    assert fold(reported, reports(report("late", at_ms=2)), OURS).loads.node_of_preallocated == {}


def test_preallocation_of_a_bundle_with_impossible_figures_ends() -> None:
    """The node serves the bundle, although no average of it is known."""
    loads = fold(LeaderLoads(), reports(report("a")), OURS).loads.preallocated("new", "a", HISTORY)
    bad = replace(measured(NodeLoad("a"), Resources(), [sample("new", math.nan)]), updated_at_ms=2)
    folded = fold(loads, reports(bad), OURS).loads
    assert (folded.nodes["a"].preallocated, folded.node_of_preallocated, folded.bundles) == ({}, {}, {})


def test_preallocations_of_others_vanish_in_pulsar_4() -> None:
    """Quirk B: what the leader's own process does not serve ends; what it serves stays until it is reported."""
    loads = fold(LeaderLoads(), reports(report("a", "x")), PULSAR_4).loads
    loads = loads.preallocated("new", "a", HISTORY).preallocated("mine", "a", HISTORY)
    kept = fold(loads, reports(report("a", "x")), PULSAR_4, owned_by_leader=frozenset({"mine"})).loads
    assert kept.nodes["a"].preallocated.keys() == {"mine"}
    assert kept.node_of_preallocated == {}
    ended = fold(kept, reports(report("a", "x", "mine")), PULSAR_4, owned_by_leader=frozenset({"mine"})).loads
    assert ended.nodes["a"].preallocated == {}


def test_preallocations_end_together_in_pulsar_2() -> None:
    """One bundle that the node reports ends all of the node's that have a history."""
    loads = fold(LeaderLoads(), reports(report("a", "x"), report("b", "known")), PULSAR_2).loads
    for bundle_id in ("new", "known", "unknown"):
        loads = loads.preallocated(bundle_id, "a", HISTORY)
    kept = fold(loads, reports(report("a", "x"), report("b", "known")), PULSAR_2).loads
    assert kept.nodes["a"].preallocated.keys() == {"new", "known", "unknown"}
    assert kept.node_of_preallocated == {}
    ended = fold(kept, reports(report("a", "x", "new"), report("b", "known")), PULSAR_2).loads
    assert ended.nodes["a"].preallocated.keys() == {"unknown"}


def test_bundles_that_nobody_reports_are_dropped_but_not_in_pulsar_2() -> None:
    """A bundle that was split would be shed forever."""
    loads = fold(LeaderLoads(), reports(report("a", "x", "y")), OURS).loads
    folded = fold(loads, reports(report("a", "y", at_ms=2)), OURS)
    assert (tuple(folded.loads.bundles), folded.dropped_bundles) == (("y",), ("x",))
    kept = fold(loads, reports(report("a", "y", at_ms=2)), PULSAR_2)
    assert (tuple(kept.loads.bundles), kept.dropped_bundles) == (("x", "y"), ())


def test_averages_start_from_a_stored_history_then_from_a_quota_then_from_the_sample() -> None:
    """A quota weighs like a thousand samples; a default is replaced by the first sample."""
    stored = BundleHistory(full_averages(MessageLoad(4.0, 4.0, 4.0, 4.0)))
    quota = MessageLoad(0.0, 0.0, 0.0, 0.0)
    seeds = Seeds({"x": stored}, {"x": quota, "y": quota})
    bundles = fold(LeaderLoads(), reports(report("a", "x", "y", "z")), OURS, seeds).loads.bundles
    load = message_load(sample("x"))
    assert bundles["x"].averages == stored.averages.add(load)
    assert bundles["y"].averages == full_averages(quota).add(load)
    assert bundles["y"].averages.long_term.sample_count == 1_000
    assert bundles["z"].averages.long_term.load == load
    assert seeds.history("new").averages.short_term.load == UNSEEN_LOAD


def test_bundle_that_two_nodes_report_counts_for_both_in_turn() -> None:
    """Each node's sum has the average as it was after that node's own sample."""
    one = replace(measured(NodeLoad("a"), Resources(), [sample("x", 1.0)]), updated_at_ms=1)
    two = replace(measured(NodeLoad("b"), Resources(), [sample("x", 3.0, topics=7)]), updated_at_ms=1)
    loads = fold(LeaderLoads(), reports(one, two), OURS).loads
    assert loads.nodes["a"].averages.short_term.throughput_in_bytes_per_s == 1.0
    assert loads.nodes["b"].averages.short_term.throughput_in_bytes_per_s == 2.0
    assert loads.bundles["x"].topic_count == 7
    assert tuple(loads.view({"x"}).recently_unloaded) == ("x",)


def test_busiest_bundles_are_stored_for_each_node() -> None:
    """So many for each node, of all; 0 stores all in the order in which they are known."""
    nodes = [
        replace(
            measured(NodeLoad(name), Resources(), [sample(f"{name}{each}", each * 1e6) for each in range(3)]),
            updated_at_ms=1,
        )
        for name in "ab"
    ]
    loads = fold(LeaderLoads(), reports(*nodes), OURS).loads
    assert set(bundles_to_store(loads, 1, OURS)) == {"a2", "b2"}
    assert bundles_to_store(loads, 2, OURS)[2:] in {("a1", "b1"), ("b1", "a1")}
    assert bundles_to_store(loads, 0, OURS) == ("a0", "a1", "a2", "b0", "b1", "b2")
    assert len(bundles_to_store(loads, 99, OURS)) == 6


@pytest.mark.parametrize("figure", [math.nan, math.inf, -1.0, 1e16])
def test_sample_that_no_node_can_have_measured_is_passed_over_and_named(figure: float) -> None:
    """Averaged, it would stay; Pulsar averages it."""
    good = fold(LeaderLoads(), reports(report("a", "x")), OURS).loads
    bad = replace(measured(NodeLoad("a"), Resources(), [sample("x", figure), sample("y")]), updated_at_ms=2)
    folded = fold(good, reports(bad), OURS)
    assert folded.loads.bundles["x"] == good.bundles["x"]
    assert [each[:3] for each in folded.implausible] == [("a", "x", "throughput_in_bytes_per_s")]
    assert folded.dropped_bundles == ()
    assert counts(folded.loads) == {"x": 1, "y": 1}
    unknown = fold(LeaderLoads(), reports(bad), OURS).loads
    assert unknown.bundles.keys() == {"y"}
    assert unknown.nodes["a"].averages.long_term.throughput_in_bytes_per_s == 1e6 + 50_000
    assert fold(good, reports(bad), PULSAR_4).implausible == ()
    assert counts(fold(good, reports(bad), PULSAR_4).loads) == {"x": 2, "y": 1}

"""What always holds for the leader's fold and for a node's own measurements, whatever is reported."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    UNSEEN_BUNDLE,
    node_averages,
)
from controlplane.core.bundles.load.leader_fold import FoldSettings, LeaderLoads, PreallocationEnd, fold
from controlplane.core.bundles.load.measured_node import measured, reported
from controlplane.core.bundles.load.view import BundleHistory, NodeLoad, Resources
from controlplane.core.bundles.reports import BundleLoad

names = st.sampled_from([f"t/n{number % 2}/{number}" for number in range(8)])
figures = st.one_of(st.floats(0, 1e9), st.sampled_from([float("nan"), float("inf"), -1.0]))
samples = st.builds(BundleLoad, names, figures, figures, figures, figures, st.integers(0, 9), *[st.just(0)] * 3)
contents = st.lists(samples, max_size=6)
ticks = st.lists(st.dictionaries(st.sampled_from("abc"), contents, max_size=3), max_size=5)
settings_of_folds = st.builds(
    FoldSettings, st.booleans(), st.booleans(), st.sampled_from(PreallocationEnd), st.booleans()
)


def reports_of(tick: Mapping[str, list[BundleLoad]], at_ms: int) -> dict[str, NodeLoad]:
    """The reports of a tick."""
    return {
        name: replace(measured(NodeLoad(name), Resources(), stats), updated_at_ms=at_ms) for name, stats in tick.items()
    }


@given(ticks, settings_of_folds)
def test_leader_knows_the_living_nodes_and_what_they_report(
    given_ticks: list[dict[str, list[BundleLoad]]], settings: FoldSettings
) -> None:
    """No dead node, no bundle that nobody reports (but in Pulsar 2), no average beyond its number of samples."""
    loads = LeaderLoads()
    for at_ms, tick in enumerate(given_ticks, start=1):
        for name, stats in tick.items():
            for each in stats:
                loads = loads.preallocated(each.bundle_id, name, BundleHistory(UNSEEN_BUNDLE))
        reports = reports_of(tick, at_ms)
        known = dict(loads.bundles)
        folded = fold(loads, reports, settings)
        assert loads.bundles == known, "the former memory has changed"
        loads = folded.loads
        assert loads.nodes.keys() == tick.keys()
        reported_bundles = {each for report in reports.values() for each in report.stats}
        if not settings.keeps_unreported_bundles:
            assert loads.bundles.keys() <= reported_bundles
        if settings.samples_implausible_loads:
            assert loads.bundles.keys() >= reported_bundles
            assert folded.implausible == ()
        for history in loads.bundles.values():
            assert history.averages.short_term.sample_count <= SHORT_TERM_SAMPLES
            assert history.averages.long_term.sample_count <= LONG_TERM_SAMPLES
        assert set(loads.node_of_preallocated.values()) <= {*tick, *"abc"}


@given(st.dictionaries(st.sampled_from("abc"), contents, max_size=3))
def test_report_counts_once_under_our_own_policy(tick: dict[str, list[BundleLoad]]) -> None:
    """Whoever asks again with the same reports gets the same averages."""
    once = fold(LeaderLoads(), reports_of(tick, 1), FoldSettings())
    again = fold(once.loads, reports_of(tick, 1), FoldSettings())
    assert again.loads.bundles == once.loads.bundles
    assert (again.dropped_bundles, again.dropped_nodes, again.implausible) == ((), (), ())
    averages = {name: each.averages for name, each in again.loads.bundles.items()}
    for node in again.loads.nodes.values():
        assert node.averages == node_averages(node.load.stats, averages)


@given(st.lists(contents, max_size=6))
def test_gains_and_losses_explain_what_a_node_serves(measurements: list[list[BundleLoad]]) -> None:
    """What it served at its report, with the gains and without the losses, is between what it serves and may serve."""
    load = NodeLoad("a")
    served: set[str] = set()
    for number, stats in enumerate(measurements):
        load = measured(load, Resources(), stats)
        assert set(load.bundles) == load.stats.keys() == {each.bundle_id for each in stats}
        assert served - set(load.bundles) <= set(load.bundle_losses)
        assert set(load.bundles) - served <= set(load.bundle_gains)
        if number % 2:
            load, served = reported(load, number), set(load.bundles)
            assert (load.bundle_gains, load.bundle_losses) == ((), ())

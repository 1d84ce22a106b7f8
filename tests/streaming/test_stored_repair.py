"""Stored loads that cannot be true: how they begin again, and that one bad report hides no overloaded node."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, message_load
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, GREATEST_USAGE, Implausible
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.config import LoadRuleConfig
from streaming.load_state import BundleState, LoadState, NodeState, PlacedReport, Position, Resources
from streaming.stored_repair import repaired
from streaming.transforms.candidates import evaluate
from tests.helpers.pipeline_world import UNKNOWN_USAGE, bundle_load

MINUTE_MS = 60_000
BAD = MessageLoad(1e308, 0.0, 0.0, 0.0)
POSITION = Position(MINUTE_MS, 0, 7)
IDS = {
    name: [f"t/{name}/0x{first:08x}_0x{first + 16:08x}" for first in range(0, 64, 16)] for name in ("n0", "n1", "bad")
}
WEIGHTS = ResourceWeights()


def resources(cpu: float) -> Resources:
    """Of a node that reports its processor alone."""
    return Resources(ResourceUsage(cpu, 100.0), *(UNKNOWN_USAGE,) * 4)


def report(number: int, node_id: str, cpu: float, bundle: BundleLoad | None = None) -> PlacedReport:
    """A report in a minute, with four bundles of 30 MB/s, or with another first one."""
    bundles = [bundle_load(bundle_id, 2.0, 3e7) for bundle_id in IDS[node_id]]
    if bundle is not None:
        bundles[0] = bundle
    return PlacedReport(Position(number * MINUTE_MS, 0, number * 10), node_id, 1, resources(cpu), "1", bundles)


def stored_bundle(newest: MessageLoad = NO_LOAD, average: MessageLoad = NO_LOAD) -> BundleState:
    """A row of the table."""
    rates = (newest.message_rate_in_per_s, newest.message_rate_out_per_s)
    sample = BundleLoad("kv/a", *rates, newest.throughput_in_bytes_per_s, newest.throughput_out_bytes_per_s, 5, 1, 1, 0)
    averages = UNSEEN_BUNDLE.add(average)
    return BundleState("kv/a", "n1", POSITION, 1, 5, sample, averages, {0: 7})


def stored_node(cpu: float = 50.0, reported: MessageLoad = NO_LOAD, smoothed: float | None = 0.5) -> NodeState:
    """A row of the table."""
    return NodeState("n1", POSITION, 1, resources(cpu), "1", cpu / 100, ("kv/a",), reported, smoothed, MINUTE_MS)


def test_loads_that_can_be_true_stay() -> None:
    """The repair changes nothing there, also not at the bounds."""
    bound = MessageLoad(GREATEST_AMOUNT, 0.0, 0.0, 0.0)
    state = LoadState([stored_bundle(bound, bound)], [stored_node(10_000.0, bound, GREATEST_USAGE)])
    assert repaired(state) == (state, ())


@pytest.mark.parametrize("wrong", [1e308, math.nan, math.inf, -1.0])
@pytest.mark.parametrize("term", ["short_term", "long_term"])
def test_averages_begin_again_with_the_newest_sample(term: str, wrong: float) -> None:
    """Place, moves and what was folded stay, so that a repeated batch counts no sample twice."""
    sample = MessageLoad(2.0, 3.0, 4.0, 5.0)
    stored = stored_bundle(sample)
    average = getattr(stored.averages, term)
    broken = replace(average, load=average.load._replace(throughput_in_bytes_per_s=wrong))
    stored = stored._replace(averages=replace(stored.averages, **{term: broken}))
    again, (found,) = repaired(LoadState([stored]))
    assert found[:3] == ("", "kv/a", "throughput_in_bytes_per_s")
    assert again.bundles == {"kv/a": stored._replace(averages=UNSEEN_BUNDLE.add(sample))}
    assert message_load(again.bundles["kv/a"].newest) == sample


def test_what_has_no_sample_that_can_be_true_is_forgotten() -> None:
    """Until it is reported again; a made-up load would be a reason to move it."""
    again, found = repaired(LoadState([stored_bundle(BAD, BAD)], [stored_node(reported=BAD)]))
    assert (again.bundles, again.nodes) == ({}, {})
    assert found == (
        Implausible("", "kv/a", "throughput_in_bytes_per_s", 1e308, GREATEST_AMOUNT),
        Implausible("n1", "", "throughput_in_bytes_per_s", 1e308, GREATEST_AMOUNT),
    )


@pytest.mark.parametrize("smoothed", [2.7e297, 100.5, math.inf, math.nan])
def test_smoothed_usage_begins_again(smoothed: float) -> None:
    """The evaluation stays known as done."""
    again, (found,) = repaired(LoadState([], [stored_node(smoothed=smoothed)]))
    assert found[:3] == ("n1", "", "smoothed_usage")
    assert (again.nodes["n1"].smoothed_usage, again.evaluated_ms) == (None, MINUTE_MS)


def sheds_of(reports: list[list[PlacedReport]]) -> list[list[tuple[str, float]]]:
    """Who sheds in each minute, and how much it should be."""
    state, found = LoadState(), []
    for minute, batch in enumerate(reports, 1):
        state.fold(batch, WEIGHTS)
        evaluation = evaluate(state, minute * MINUTE_MS, minute * MINUTE_MS, LoadRuleConfig())
        state.keep_smoothed(evaluation.smoothed_usages, evaluation.evaluated_ms)
        assert all(0 <= usage <= 1 for usage in evaluation.smoothed_usages.values())
        found.append([(row.node_id, row.target_bytes_per_s) for row in evaluation.sheds])
    return found


@pytest.mark.parametrize(
    "first", [report(1, "bad", 1e300), report(1, "bad", 20, bundle_load(IDS["bad"][0], 2.0, 1e308))]
)
def test_one_bad_report_changes_the_candidates_of_no_later_minute(first: PlacedReport) -> None:
    """The overloaded node is found when it would be found without the bad report, and only it."""
    ordinary = [
        [report(minute, "n0", 95), report(minute, "n1", 20), report(minute, "bad", 20)] for minute in range(1, 6)
    ]
    expected = sheds_of(ordinary)
    assert expected[-1][0][0] == "n0"
    assert {node_id for each in expected for node_id, _ in each} == {"n0"}
    with_bad = sheds_of([[*ordinary[0][:2], first], *ordinary[1:]])
    assert {node_id for each in with_bad for node_id, _ in each} == {"n0"}
    assert with_bad[1:] == expected[1:]

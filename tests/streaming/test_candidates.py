"""When and for which bundles the rules are evaluated over the tables' rows. No Spark runs."""

from dataclasses import replace
from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, MessageLoad, message_load
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig
from streaming.load_state import BundleState, LoadState, NodeState, Position, Resources
from streaming.table_contracts import SHED_CANDIDATES_TABLE, SPLIT_CANDIDATES_TABLE
from streaming.transforms.candidates import (
    ShedRow,
    SplitRow,
    candidate_of,
    due_evaluation,
    evaluate,
)

MIB = 1_048_576.0
NOW_MS = 10_000_000
NEWEST = Position(NOW_MS, 3, 17)
RULES = LoadRuleConfig(
    split=SplitSettings(max_message_rate_per_s=100),
    shed=ThresholdSettings(min_throughput_mib_per_s=1),
    grace_period_ms=1_000_000,
    report_lifetime_ms=2_000_000,
)


def node(node_id: str, usage: float, *bundle_ids: str, **changes: Any) -> NodeState:  # noqa: ANN401 - fields of the row
    """A node that has just reported these bundles at 50 MiB/s in all."""
    reported = MessageLoad(50 * MIB, 0.0, 0.0, 0.0)
    resources = Resources(*(ResourceUsage(-1.0, -1.0),) * 5)
    state = NodeState(node_id, NEWEST, 1, resources, "1", usage, bundle_ids, reported, None, None)
    return state._replace(**changes)


def bundle(bundle_id: str, node_id: str, rate_per_s: float = 0.0, **changes: Any) -> BundleState:  # noqa: ANN401 - fields of the row
    """A bundle of 25 MiB/s, with the same figures in the short and in the long run."""
    newest = BundleLoad(bundle_id, rate_per_s, 0.0, 25 * MIB, 0.0, 5, 1, 1, 0)
    averages = UNSEEN_BUNDLE.add(message_load(newest))
    state = BundleState(bundle_id, node_id, NEWEST, 1, None, newest, averages, {3: 17})
    return state._replace(**changes)


BUSY = node("n1", 0.9, "kv/a", "kv/b")
IDLE = node("n2", 0.1)
BUNDLES = [bundle("kv/a", "n1", 60.0), bundle("kv/b", "n1", 160.0)]


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 10**4))
def test_each_interval_is_evaluated_once(now_ms: int, later_ms: int, interval_ms: int) -> None:
    """After an evaluation the next one is due exactly when log time has entered another interval."""
    first = due_evaluation(now_ms, None, interval_ms)
    assert first is not None
    assert first % interval_ms == 0
    assert 0 <= now_ms - first < interval_ms
    second = due_evaluation(now_ms + later_ms, first, interval_ms)
    entered_another = (now_ms + later_ms) // interval_ms > now_ms // interval_ms
    assert (second is not None) == entered_another


def test_both_rules_name_their_evidence() -> None:
    """The overloaded node's bundle and the bundle above its limit are found, each with what was measured."""
    found = evaluate(LoadState(BUNDLES, [IDLE, BUSY]), NOW_MS - 1, NOW_MS, RULES)
    (split,) = found.splits
    assert (split.bundle_id, split.node_id, split.namespace) == ("kv/b", "n1", "kv")
    assert split.exceeded == [("message_rate_per_s", 160.0, 100.0)]
    assert split.evidence == {"message_rate_per_s": "160.0", "max_message_rate_per_s": "100"}
    (shed,) = found.sheds
    assert (shed.bundle_id, shed.smoothed_usage, shed.mean_usage) == ("kv/a", 0.9, 0.5)
    assert shed.evidence["target_bytes_per_s"] == repr(shed.target_bytes_per_s)
    assert found.smoothed_usages == {"n1": 0.9, "n2": 0.1}


def test_rows_are_whole_and_become_candidates() -> None:
    """Rows have the tables' columns in the tables' order, and the same id, window and evidence go to the topic."""
    found = evaluate(LoadState(BUNDLES, [IDLE, BUSY]), NOW_MS - 1, NOW_MS, RULES)
    assert SplitRow._fields == SPLIT_CANDIDATES_TABLE.columns
    assert ShedRow._fields == SHED_CANDIDATES_TABLE.columns
    for row, action in ((found.splits[0], "split"), (found.sheds[0], "shed")):
        candidate = candidate_of(row)
        assert (candidate.action, candidate.candidate_id) == (action, f"{action}:{row.bundle_id}:load-reports[3]@17")
        assert (candidate.window_start_ms, candidate.window_end_ms) == (1, NOW_MS)
        assert (candidate.rule, candidate.evidence) == (row.rule, row.evidence)
        assert (row.evaluated_ms, row.day) == (NOW_MS - 1, date(1970, 1, 1))


def test_silent_node_does_not_count() -> None:
    """A node whose newest report is too old neither lowers the mean nor counts as a second node to split for."""
    silent = IDLE._replace(position=NEWEST._replace(append_time_ms=NOW_MS - RULES.report_lifetime_ms))
    found = evaluate(LoadState(BUNDLES, [BUSY, silent]), NOW_MS, NOW_MS, RULES)
    assert (found.splits, found.sheds, found.smoothed_usages) == ((), (), {"n1": 0.9})
    barely = IDLE._replace(position=NEWEST._replace(append_time_ms=NOW_MS - RULES.report_lifetime_ms + 1))
    assert evaluate(LoadState(BUNDLES, [BUSY, barely]), NOW_MS, NOW_MS, RULES).sheds


def test_bundle_that_moved_lately_rests() -> None:
    """A bundle is not shed again within the grace period after it changed its node: bundles must not bounce."""
    moved = [each._replace(moved_at_ms=NOW_MS - RULES.grace_period_ms + 1) for each in BUNDLES]
    assert evaluate(LoadState(moved, [IDLE, BUSY]), NOW_MS, NOW_MS, RULES).sheds == ()
    rested = [each._replace(moved_at_ms=NOW_MS - RULES.grace_period_ms) for each in BUNDLES]
    assert evaluate(LoadState(rested, [IDLE, BUSY]), NOW_MS, NOW_MS, RULES).sheds


def test_bundle_counts_for_its_last_reporter() -> None:
    """A former owner's old report still names the bundle; it must not be proposed, or counted, twice."""
    gone = node("n0", 0.9, "kv/a", "kv/b")
    found = evaluate(LoadState(BUNDLES, [gone, IDLE, BUSY]), NOW_MS, NOW_MS, RULES)
    assert {row.node_id for row in found.splits} | {row.node_id for row in found.sheds} == {"n1"}
    capped = replace(RULES, split=SplitSettings(max_message_rate_per_s=100, max_bundles_per_namespace=3))
    assert len(evaluate(LoadState(BUNDLES, [gone, IDLE, BUSY]), NOW_MS, NOW_MS, capped).splits) == 1


def test_a_node_whose_other_bundles_moved_keeps_the_last_one() -> None:
    """What another node has reported since is not its own any more, and a sole bundle is not shed."""
    bundles = [bundle("kv/a", "n1", 60.0), bundle("kv/b", "n2", 60.0)]
    assert evaluate(LoadState(bundles, [IDLE, BUSY]), NOW_MS - 1, NOW_MS, RULES).sheds == ()


def test_bundle_nobody_reports_any_more_is_left_alone() -> None:
    """A bundle that its node's newest report does not name any more was split or dropped: nothing is to be done."""
    dropped = node("n1", 0.9, "kv/a", "kv/gone")
    found = evaluate(LoadState(BUNDLES, [IDLE, dropped]), NOW_MS, NOW_MS, RULES)
    assert found.splits == ()
    assert [row.bundle_id for row in found.sheds] == ["kv/a"]


def test_usage_is_smoothed_from_evaluation_to_evaluation() -> None:
    """The former smoothed usage weighs 0.9, but only of a node that took part in the last evaluation."""
    steady = BUSY._replace(smoothed_usage=0.5, smoothed_at_ms=9_000_000)
    returned = IDLE._replace(smoothed_usage=0.8, smoothed_at_ms=8_000_000)
    found = evaluate(LoadState([], [steady, returned]), NOW_MS, NOW_MS, RULES)
    assert found.smoothed_usages == {"n1": 0.5 * 0.9 + (1 - 0.9) * 0.9, "n2": 0.1}


@given(st.permutations([BUSY, IDLE, node("n3", 0.4, "kv/c")]), st.permutations([*BUNDLES, bundle("kv/c", "n3", 500.0)]))
def test_order_of_rows_does_not_matter(nodes: list[NodeState], bundles: list[BundleState]) -> None:
    """Tables have no order: the same rows give the same candidates, or a repeated batch could propose others."""
    expected = evaluate(LoadState(sorted(bundles), sorted(nodes)), NOW_MS, NOW_MS, RULES)
    assert evaluate(LoadState(bundles, nodes), NOW_MS, NOW_MS, RULES) == expected

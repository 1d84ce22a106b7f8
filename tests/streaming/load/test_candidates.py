"""When and for which bundles the rules are evaluated. No Spark runs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, message_load
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState, Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig
from streaming.contracts.loads import SHED_CANDIDATES_TABLE, SPLIT_CANDIDATES_TABLE
from streaming.load.candidates import (
    Evaluation,
    ShedRow,
    SplitRow,
    candidate_of,
    counted_nodes,
    due_evaluation,
    evaluate,
    last_evaluation_ms,
)
from streaming.load.proposals import proposed_before
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.plain_load import PlainBundles, plain_evaluation

MIB = 1_048_576.0
NOW_MS = 10_000_000
NEWEST = Position(NOW_MS, 3, 17)
RULES = LoadRuleConfig(
    split=SplitSettings(max_message_rate_per_s=100),
    shed=ThresholdSettings(min_throughput_mib_per_s=1),
    grace_period_ms=1_000_000,
    report_lifetime_ms=2_000_000,
)


def node(node_id: str, usage: float, **changes: Any) -> NodeState:  # noqa: ANN401 - fields of the row
    """A node that has just reported 50 MiB/s in all."""
    resources = Resources(*(ResourceUsage(-1.0, -1.0),) * 5)
    return NodeState(node_id, NEWEST, 1, resources, "1", usage, 2, MessageLoad(50 * MIB, 0.0, 0.0, 0.0))._replace(
        **changes
    )


def bundle(bundle_id: str, node_id: str, rate_per_s: float = 0.0, **changes: Any) -> BundleState:  # noqa: ANN401 - fields of the row
    """A bundle of 25 MiB/s, with the same figures in the short and in the long run."""
    newest = BundleLoad(bundle_id, rate_per_s, 0.0, 25 * MIB, 0.0, 5, 1, 1, 0)
    averages = UNSEEN_BUNDLE.add(message_load(newest))
    state = BundleState(bundle_id, node_id, NEWEST, 1, None, newest, averages, {3: 17})
    return state._replace(**changes)


BUSY = node("n1", 0.9)
IDLE = node("n2", 0.1)
BUNDLES = [bundle("kv/a", "n1", 60.0), bundle("kv/b", "n1", 160.0)]


def found_in(
    bundles: Sequence[BundleState],
    nodes: Sequence[NodeState],
    rules: LoadRuleConfig = RULES,
    evaluated_ms: int = NOW_MS,
) -> Evaluation:
    """An evaluation of the rules at the time of the newest report."""
    counted = counted_nodes(nodes, NOW_MS, rules)
    last_ms = last_evaluation_ms(nodes, NOW_MS)
    owned = PlainBundles(bundles, counted, NOW_MS, rules.grace_period_ms)
    return evaluate(counted, owned, evaluated_ms, last_ms, rules)


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
    found = found_in(BUNDLES, [IDLE, BUSY])
    (split,) = found.splits
    assert (split.bundle_id, split.node_id, split.namespace) == ("kv/b", "n1", "kv")
    assert split.exceeded == [("message_rate_per_s", 160.0, 100.0)]
    assert split.evidence == {"message_rate_per_s": "160.0", "max_message_rate_per_s": "100"}
    (shed,) = found.sheds
    assert (shed.bundle_id, shed.smoothed_usage, shed.mean_usage) == ("kv/a", 0.9, 0.5)
    assert shed.evidence["target_bytes_per_s"] == repr(shed.target_bytes_per_s)
    assert found.smoothed_usages == {"n1": 0.9, "n2": 0.1}
    both = MessageLoad(50 * MIB, 0.0, 220.0, 0.0)
    assert found.sums == {"n1": BundleSums(2, both, both), "n2": BundleSums(0, NO_LOAD, NO_LOAD)}


def test_rows_are_whole_and_become_candidates() -> None:
    """Rows have the tables' columns in the tables' order, and the same id, window and evidence go to the topic."""
    found = found_in(BUNDLES, [IDLE, BUSY], evaluated_ms=NOW_MS - 1)
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
    found = found_in(BUNDLES, [BUSY, silent])
    assert (found.splits, found.sheds, found.smoothed_usages) == ((), (), {"n1": 0.9})
    barely = IDLE._replace(position=NEWEST._replace(append_time_ms=NOW_MS - RULES.report_lifetime_ms + 1))
    assert found_in(BUNDLES, [BUSY, barely]).sheds


def test_bundle_that_moved_lately_rests() -> None:
    """A bundle is not shed again within the grace period after it changed its node: bundles must not bounce."""
    moved = [each._replace(moved_at_ms=NOW_MS - RULES.grace_period_ms + 1) for each in BUNDLES]
    assert found_in(moved, [IDLE, BUSY]).sheds == ()
    rested = [each._replace(moved_at_ms=NOW_MS - RULES.grace_period_ms) for each in BUNDLES]
    assert found_in(rested, [IDLE, BUSY]).sheds


def test_a_sole_bundle_is_not_shed() -> None:
    """What another node has reported since is not the node's own any more."""
    bundles = [bundle("kv/a", "n1", 60.0), bundle("kv/b", "n2", 60.0)]
    assert found_in(bundles, [IDLE, BUSY]).sheds == ()


def test_bundle_that_is_reported_no_more_is_left_alone() -> None:
    """A bundle that its node's newest report does not name was split or dropped: nothing is to be done."""
    former = bundle("kv/b", "n1", 160.0, position=NEWEST._replace(offset=16))
    found = found_in([BUNDLES[0], bundle("kv/c", "n1"), former], [IDLE, BUSY])
    assert found.splits == ()
    assert [row.bundle_id for row in found.sheds] == ["kv/a"]
    capped = replace(RULES, split=SplitSettings(max_message_rate_per_s=50, max_bundles_per_namespace=3))
    assert len(found_in([*BUNDLES, former._replace(bundle_id="kv/z")], [IDLE, BUSY], capped).splits) == 1


def test_samples_of_a_report_whose_resources_cannot_be_true_count() -> None:
    """The node's row is that of an earlier report; its bundles' samples of the later one are its own all the same."""
    later = [each._replace(position=NEWEST._replace(offset=18)) for each in BUNDLES]
    assert [row.bundle_id for row in found_in(later, [IDLE, BUSY]).splits] == ["kv/b"]


def test_usage_is_smoothed_from_evaluation_to_evaluation() -> None:
    """The former smoothed usage weighs 0.9, but only of a node that took part in the last evaluation."""
    steady = BUSY._replace(smoothed_usage=0.5, smoothed_at_ms=9_000_000)
    returned = IDLE._replace(smoothed_usage=0.8, smoothed_at_ms=8_000_000)
    found = found_in([], [steady, returned])
    assert found.smoothed_usages == {"n1": 0.5 * 0.9 + (1 - 0.9) * 0.9, "n2": 0.1}


def test_an_evaluation_that_lies_ahead_is_not_waited_for() -> None:
    """A clock was wrong when it took place. A node that took part in it alone begins anew; others go on."""
    ahead = BUSY._replace(smoothed_usage=0.5, smoothed_at_ms=NOW_MS + 1)
    steady = IDLE._replace(smoothed_usage=0.2, smoothed_at_ms=9_000_000)
    assert last_evaluation_ms([ahead, steady], NOW_MS) == 9_000_000
    assert last_evaluation_ms([ahead, steady], NOW_MS + 1) == NOW_MS + 1
    assert last_evaluation_ms([ahead], NOW_MS) is None
    assert found_in([], [ahead, steady]).smoothed_usages == {"n1": 0.9, "n2": 0.2 * 0.9 + (1 - 0.9) * 0.1}


def test_a_candidate_of_a_report_that_was_dated_ahead_is_found_again(tmp_path: Path) -> None:
    """Midnight lies between its evaluation and the next one, or between that and the report's time."""
    midnight_ms = 86_400_000
    create_missing(tmp_path, bucket_count=2)
    table = TableWriter(tmp_path, SPLIT_CANDIDATES_TABLE, "app")
    (found,) = found_in([BUNDLES[1]._replace(position=NEWEST)], [IDLE, BUSY]).splits
    for ahead_ms in (-1, RULES.report_lifetime_ms, 30 * RULES.report_lifetime_ms):
        first = found._replace(
            candidate_id=f"{ahead_ms}",
            evaluated_ms=midnight_ms - 1,
            day=date(1970, 1, 1),
            window_end_ms=midnight_ms + ahead_ms,
        )
        table.append([first._asdict()], (table.written_version or 0) + 1)
        again = first._replace(evaluated_ms=midnight_ms - 2 + RULES.report_lifetime_ms, day=date(1970, 1, 2))
        assert proposed_before(table, [again], RULES) == {again.candidate_id}


NODE_IDS = ("n1", "n2", "n3", "n4")
TRAFFIC = st.sampled_from([0.0, 1 * MIB, 5 * MIB, 5 * MIB, 40 * MIB])
NODES = st.tuples(
    *(
        st.builds(
            partial(node, name),
            st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]),
            reported=st.builds(MessageLoad, TRAFFIC, *[st.just(0.0)] * 3),
            smoothed_usage=st.none() | st.sampled_from([0.2, 0.8]),
            smoothed_at_ms=st.just(9),
        )
        for name in NODE_IDS
    )
)
BUNDLE_STATES = st.lists(
    st.builds(
        lambda name, node_id, rate, traffic, offset, moved: bundle(
            name,
            node_id,
            position=NEWEST._replace(offset=offset),
            moved_at_ms=moved,
            averages=UNSEEN_BUNDLE.add(MessageLoad(traffic, 0.0, rate, 0.0)),
        ),
        st.sampled_from([f"{space}/{name}" for space in ("a", "b", "pulsar/n1:1") for name in "wxyz"]),
        st.sampled_from(NODE_IDS),
        st.sampled_from([1.0, 99.0, 101.0]),
        TRAFFIC,
        st.sampled_from([16, 17, 17, 17]),
        st.sampled_from([None, None, NOW_MS, 1]),
    ),
    unique_by=lambda each: each.bundle_id,
    max_size=10,
)
ANY_RULES = st.builds(
    lambda boundary, quirk, most, least: replace(
        RULES,
        shed=ThresholdSettings(
            min_throughput_mib_per_s=least,
            lower_boundary_enabled=boundary,
            smooths_again_for_lower_boundary=quirk,
        ),
        split=SplitSettings(max_message_rate_per_s=100, max_bundles_per_namespace=most),
    ),
    st.booleans(),
    st.booleans(),
    st.integers(1, 6),
    st.sampled_from([0.0, 1.0, 10.0]),
)


@given(NODES, BUNDLE_STATES, ANY_RULES)
def test_bundles_of_hot_nodes_are_enough(
    nodes: Sequence[NodeState], bundles: list[BundleState], rules: LoadRuleConfig
) -> None:
    """The result is that of the rules applied once to all nodes with all bundles, and bundles of others stay away."""
    counted = counted_nodes(nodes, NOW_MS, rules)
    owned = PlainBundles(bundles, counted, NOW_MS, rules.grace_period_ms)
    last_ms = last_evaluation_ms(nodes, NOW_MS)
    found = evaluate(counted, owned, NOW_MS, last_ms, rules)
    shedding, splits = plain_evaluation(counted, owned, last_ms, rules)
    sheds = [(row.node_id, row.bundle_id, row.throughput_bytes_per_s, row.target_bytes_per_s) for row in found.sheds]
    assert sheds == [(each.node_id, each.bundle_id, each.traffic, each.target) for each in shedding.choices]
    assert found.smoothed_usages == shedding.memory.smoothed_usages
    assert [row.bundle_id for row in found.splits] == [choice.bundle.bundle_id for choice in splits]


@given(st.permutations([BUSY, IDLE, node("n3", 0.4)]), st.permutations([*BUNDLES, bundle("kv/c", "n3", 500.0)]))
def test_order_of_rows_does_not_matter(nodes: list[NodeState], bundles: list[BundleState]) -> None:
    """Tables have no order: the same rows give the same candidates, or a repeated batch could propose others."""
    assert found_in(bundles, nodes) == found_in(sorted(bundles), sorted(nodes))

"""Load reports folded into bundles and nodes: once each, in log order, whatever the batches. No Spark runs."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from controlplane.core.bundles.load.averages import (
    NO_LOAD,
    UNSEEN_BUNDLE,
    BundleAverages,
    MessageLoad,
    message_load,
    node_averages,
)
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, Implausible
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.load_state import LoadState, PlacedReport, Position, Resources
from streaming.table_contracts import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from tests.helpers.pipeline_world import bundle_load

WEIGHTS = ResourceWeights(direct_memory=0.5)
BUNDLE_IDS = [f"team/{namespace}/0x{index:08x}_0x{index + 1:08x}" for namespace in "ab" for index in range(2)]
UNKNOWN = ResourceUsage(-1.0, -1.0)

figures = st.sampled_from([0.0, 0.1, 1e3 / 3, 1e9 / 7]) | st.floats(0, 1e9)
counts = st.integers(0, 2_000)
bundles_reported = st.lists(
    st.builds(BundleLoad, st.sampled_from(BUNDLE_IDS), *[figures] * 4, *[counts] * 4),
    unique_by=lambda bundle: bundle.bundle_id,
    max_size=4,
)
usages = st.builds(ResourceUsage, st.floats(0, 400), st.sampled_from([-1.0, 100.0, 400.0]))


@st.composite
def logs(draw: st.DrawFn) -> list[PlacedReport]:
    """Reports of three nodes in two partitions; a node's reports stay in one, and append times may be equal."""
    time_ms = 1_000
    log: list[PlacedReport] = []
    ends = [0, 0]
    for _ in range(draw(st.integers(1, 12))):
        time_ms += draw(st.sampled_from([0, 0, 1, 500]))
        node = draw(st.integers(0, 2))
        partition = node % 2
        resources = Resources(*(draw(usages) for _ in Resources._fields))
        position = Position(time_ms, partition, ends[partition])
        ends[partition] += draw(st.sampled_from([1, 1, 2]))
        log.append(PlacedReport(position, f"n{node}", 1, resources, "1", draw(bundles_reported)))
    return sorted(log, key=lambda report: report.position)


@st.composite
def logs_in_batches(draw: st.DrawFn) -> tuple[list[PlacedReport], list[list[PlacedReport]]]:
    """A log, and the same in batches of which some come twice, each in an order of its own."""
    log = draw(logs())
    cuts = sorted({0, len(log), *draw(st.lists(st.integers(0, len(log)), max_size=4))})
    batches = []
    for start, end in pairwise(cuts):
        batches += [draw(st.permutations(log[start:end])) for _ in range(draw(st.integers(1, 2)))]
    return log, batches


def report(
    node_id: str, number: int, bundles: Iterable[BundleLoad] = (), *, partition: int = 0, incarnation: int = 1
) -> PlacedReport:
    """A report at this offset, as many milliseconds after the beginning."""
    cpu = ResourceUsage(number, 100.0)
    resources = Resources(cpu, *(UNKNOWN,) * 4)
    return PlacedReport(Position(100 + number, partition, number), node_id, incarnation, resources, "1", list(bundles))


def folded(*batches: Sequence[PlacedReport]) -> LoadState:
    """The state after these batches."""
    state = LoadState()
    for batch in batches:
        state.fold(batch, WEIGHTS)
    return state


def as_rows(state: LoadState) -> tuple[list[Row], list[Row]]:
    """What reading the tables gives back."""
    bundle_row, node_row = Row(*BUNDLE_LOAD_TABLE.columns), Row(*BROKER_LOAD_TABLE.columns)
    return [bundle_row(*row) for row in state.bundle_rows()], [node_row(*row) for row in state.node_rows()]


@given(logs_in_batches())
def test_each_report_counts_once_whatever_the_batches(
    case: tuple[list[PlacedReport], list[list[PlacedReport]]],
) -> None:
    """Batches that are cut elsewhere, disordered or repeated give the state of the log read at once."""
    log, batches = case
    state, expected = folded(*batches), folded(log)
    assert (state.bundles, state.nodes) == (expected.bundles, expected.nodes)


@given(logs())
def test_averages_and_sums_are_the_cores(log: list[PlacedReport]) -> None:
    """Every average is the core's fold in log order, and a node's row sums those of its newest report's bundles."""
    averages: dict[str, BundleAverages] = {}
    for each in log:
        for bundle in each.bundles:
            averages[bundle.bundle_id] = averages.get(bundle.bundle_id, UNSEEN_BUNDLE).add(message_load(bundle))
    state = folded(log)
    assert {bundle_id: bundle.averages for bundle_id, bundle in state.bundles.items()} == averages
    newest = {each.node_id: each for each in log}
    _, rows = as_rows(state)
    assert {row["node_id"] for row in rows} == newest.keys()
    for row in rows:
        told = newest[row["node_id"]]
        by_id = sorted(told.bundles)
        assert (row["report_time_ms"], row["report_partition"], row["report_offset"]) == told.position
        assert row["bundle_ids"] == [bundle.bundle_id for bundle in by_id]
        assert row["bundle_count"] == len(by_id)
        assert row["weighted_usage"] == weighted_usage(told.resources, WEIGHTS)
        total = NO_LOAD
        for bundle in by_id:
            total = total.plus(message_load(bundle))
        assert row["reported"] == total
        assert (row["short_term"], row["long_term"]) == node_averages(row["bundle_ids"], averages)


@given(logs(), logs())
def test_rows_keep_the_whole_state(before: list[PlacedReport], after: list[PlacedReport]) -> None:
    """A state that was read back from its tables goes on exactly like the one that was not."""
    state = folded(before)
    state.keep_smoothed(dict.fromkeys(state.nodes, 0.25), 7)
    again = LoadState.of_rows(*as_rows(state))
    assert (again.bundles, again.nodes, again.evaluated_ms) == (state.bundles, state.nodes, state.evaluated_ms)
    for each in (state, again):
        each.fold(after, WEIGHTS)
    assert (again.bundles, again.nodes) == (state.bundles, state.nodes)


def test_full_averages_forget() -> None:
    """Beyond 10 and 1,000 samples the averages go on as running means."""
    log = [report("n", number, [bundle_load(BUNDLE_IDS[0], float(number))]) for number in range(1_025)]
    averages = folded(log).bundles[BUNDLE_IDS[0]].averages
    assert (averages.short_term.sample_count, averages.long_term.sample_count) == (10, 1_000)
    assert averages.short_term.load.message_rate_per_s > averages.long_term.load.message_rate_per_s


def test_row_tells_where_the_bundle_is_and_when_it_moved() -> None:
    """A bundle's row names the last reporter, its newest figures, and since when it has been with another node."""
    told = [("n1", 3), ("n1", 4), ("n2", 5), ("n2", 6)]
    log = [
        report(node_id, number, [bundle_load(BUNDLE_IDS[0], topics=topics)], partition=number // 2)
        for number, (node_id, topics) in enumerate(told)
    ]
    (row,), _ = as_rows(folded(log))
    assert row["namespace"] == "team/a"
    assert (row["node_id"], row["moved_at_ms"], row["topic_count"]) == ("n2", 102, 6)
    assert (row["first_report_time_ms"], row["report_time_ms"]) == (100, 103)
    assert (row["report_partition"], row["report_offset"]) == (1, 3)
    assert row["folded_offsets"] == {0: 1, 1: 3}


def test_bundle_that_never_moved_does_not_rest() -> None:
    """``moved_at_ms`` is null until another node reports the bundle, or a new bundle could not be shed at first."""
    state = folded([report("n1", number, [bundle_load(BUNDLE_IDS[0])]) for number in range(3)])
    assert state.bundles[BUNDLE_IDS[0]].moved_at_ms is None


def test_report_of_a_former_life_does_not_count() -> None:
    """A process that was replaced and wakes up once more says nothing of the bundles or of its successor's usage."""
    bundle = bundle_load(BUNDLE_IDS[0], 10.0)
    state = folded(
        [report("n1", 0, [bundle], incarnation=1), report("n1", 1, [bundle], incarnation=2)],
        [report("n1", 2, [bundle_load(BUNDLE_IDS[0], 9_000.0)], incarnation=1)],
    )
    assert state.bundles[BUNDLE_IDS[0]].averages.long_term.sample_count == 2
    assert state.nodes["n1"].position.offset == 1
    assert state.nodes["n1"].weighted_usage == weighted_usage(report("n1", 1).resources, WEIGHTS)


def test_evaluations_leave_their_time() -> None:
    """The last evaluation's log time is known, or each batch after a restart would evaluate again."""
    state = folded([report("n1", 0), report("n2", 1)])
    before_ms = state.evaluated_ms
    assert before_ms is None
    state.keep_smoothed({"n1": 0.5, "n2": 0.1}, 60_000)
    assert state.evaluated_ms == 60_000
    _, rows = as_rows(state)
    assert [(row["smoothed_usage"], row["smoothed_at_ms"]) for row in rows] == [(0.5, 60_000), (0.1, 60_000)]
    assert isinstance(state.nodes["n1"].reported, MessageLoad)


def test_report_that_is_read_late_does_not_hide_a_newer_one() -> None:
    """Partitions are read at different paces: a node's row stays with the report that was appended last."""
    state = folded([report("n1", 5)], [report("n1", 3, partition=1)])
    assert state.nodes["n1"].position == Position(105, 0, 5)


def test_sample_that_cannot_be_true_is_passed_over_alone() -> None:
    """Neighbours in the same report and later samples count as if it had not been sent, and it is told."""
    bad, good = BUNDLE_IDS[:2]
    before = [bundle_load(bad, 10.0), bundle_load(good, 20.0)]
    state = LoadState()
    assert state.fold([report("n1", 0, before)], WEIGHTS) == ()
    worse = bundle_load(bad)._replace(throughput_in_bytes_per_s=1e308)
    found = state.fold([report("n1", 1, [worse, bundle_load(good, 40.0)])], WEIGHTS)
    assert found == (Implausible("n1", bad, "throughput_in_bytes_per_s", 1e308, GREATEST_AMOUNT),)
    assert state.bundles[bad].position.offset == 0
    assert state.bundles[good].averages == folded([report("n1", 0, before)]).bundles[good].averages.add(
        message_load(bundle_load(good, 40.0))
    )
    node = state.nodes["n1"]
    assert (node.position.offset, node.bundle_ids) == (1, (bad, good))
    assert node.reported == message_load(bundle_load(good, 40.0))
    state.fold([report("n1", 2, before)], WEIGHTS)
    averages = UNSEEN_BUNDLE.add(message_load(before[0])).add(message_load(before[0]))
    assert state.bundles[bad].averages == averages


@pytest.mark.parametrize("used", [1e300, 10_000.5, math.nan, math.inf, -1.0])
def test_node_with_resources_that_cannot_be_true_stays_as_it_was(used: float) -> None:
    """Its bundles' samples count; the node is judged by its former report until that is too old."""
    bundle = bundle_load(BUNDLE_IDS[0], 10.0)
    wrong = report("n1", 1, [bundle])
    wrong = wrong._replace(resources=wrong.resources._replace(cpu=ResourceUsage(used, 100.0)))
    state = folded([report("n1", 0, [bundle])])
    former = state.nodes["n1"]
    (found,) = state.fold([wrong], WEIGHTS)
    assert found[:3] == ("n1", "", "cpu")
    assert repr(found.value) == repr(used)
    assert state.nodes == {"n1": former}
    assert state.bundles[bundle.bundle_id].averages.long_term.sample_count == 2
    state.fold([report("n1", 2, [bundle])], WEIGHTS)
    assert state.nodes["n1"].position.offset == 2

"""The fold over columns against the plain fold of one report after the other: equal bits, whatever the batches are."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import MessageLoad, TimeAverage, message_load
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, implausible_load
from controlplane.core.bundles.load.reported_state import BundleState, Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.sample_fold import (
    NONE,
    AverageColumns,
    BundleColumns,
    FoldedOffsets,
    FoldedSamples,
    SampleColumns,
    are_plausible,
    fold_samples,
    unseen_bundles,
)
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from tests.helpers.cut_partitions import cut_partitions
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad

BUNDLES = [f"kv/0x{number}0000000_0x{number + 1}0000000" for number in range(4)]
NODES = ["n0", "n1", "n2"]
_NO_RESOURCES = Resources(*[ResourceUsage(0.0, 1.0)] * len(Resources._fields))

figures = st.sampled_from([0.0, 0.1, 1e3 / 3, 1e9 / 7]) | st.floats(0, GREATEST_AMOUNT)
positions = st.builds(
    Position,
    st.integers(1_000, 1_004),  # append times that do not rise with the offsets, too
    st.integers(0, 1),
    st.integers(0, 6) | st.integers(0, 1 << 62),
)
loads = st.builds(BundleLoad, st.sampled_from(BUNDLES), *[figures] * 4, *[st.integers(0, 9)] * 4)
reports = st.builds(
    PlacedReport,
    positions,
    st.sampled_from(NODES),
    st.just(1),
    st.just(_NO_RESOURCES),
    st.just("1"),
    st.lists(loads, max_size=4).map(sorted),
)


@st.composite
def batches(draw: st.DrawFn) -> list[list[PlacedReport]]:
    """Reports in batches, of which some come again, each in an order of its own."""
    drawn = draw(st.lists(reports, unique_by=lambda each: each.position[1:], max_size=12))
    cuts = sorted(draw(st.lists(st.integers(0, len(drawn)), max_size=4)))
    cut = [drawn[start:end] for start, end in zip([0, *cuts], [*cuts, len(drawn)], strict=True)]
    again = draw(st.lists(st.sampled_from(cut), max_size=2))
    return [draw(st.permutations(batch)) for batch in (*cut, *again)]


def samples_of(batch: Sequence[PlacedReport]) -> tuple[SampleColumns, list[tuple[PlacedReport, BundleLoad]]]:
    """The samples as columns, and what each of them is of."""
    samples = [(report, load) for report in batch for load in report.bundles]
    numbers = [
        (BUNDLES.index(load.bundle_id), NODES.index(report.node_id), *report.position) for report, load in samples
    ]
    load = np.array([message_load(load) for _, load in samples]).reshape(-1, 4).T
    bundle, node, time_ms, partition, offset = np.array(numbers, np.int64).reshape(-1, 5).T
    return SampleColumns(bundle, node, time_ms, partition, offset, load), samples


def nothing() -> tuple[BundleColumns, FoldedOffsets]:
    """The state before the first report."""
    empty = np.zeros(0, np.int64)
    return unseen_bundles(len(BUNDLES)), FoldedOffsets(empty, empty, empty)


def average(columns: AverageColumns, number: int, like: TimeAverage) -> TimeAverage:
    """One bundle's average."""
    mean = MessageLoad(*columns.load[:, number].tolist())
    return TimeAverage(like.max_samples, int(columns.sample_count[number]), mean)


def compare(result: FoldedSamples, plain: PlainLoad) -> None:
    """Every value of every bundle, to the bit."""
    made = result.bundles
    assert {BUNDLES[number] for number in np.flatnonzero(made.node != NONE)} == plain.bundles.keys()
    for bundle_id, bundle in plain.bundles.items():
        number = BUNDLES.index(bundle_id)
        assert NODES[made.node[number]] == bundle.node_id
        assert made.first_report_time_ms[number] == bundle.first_report_time_ms
        assert made.moved_at_ms[number] == (NONE if bundle.moved_at_ms is None else bundle.moved_at_ms)
        assert average(made.short_term, number, bundle.averages.short_term) == bundle.averages.short_term
        assert average(made.long_term, number, bundle.averages.long_term) == bundle.averages.long_term
    folded = list(zip(*(column.tolist() for column in result.folded), strict=True))
    assert folded == sorted(
        (BUNDLES.index(bundle_id), partition, offset)
        for bundle_id, bundle in plain.bundles.items()
        for partition, offset in bundle.folded_offsets.items()
    )


def is_newest(bundle: BundleState, report: PlacedReport, load: BundleLoad) -> bool:
    """Whether a sample is the one that a bundle has had last."""
    return (bundle.position, bundle.newest) == (report.position, load)


@given(batches())
def test_columns_fold_as_single_samples_do(drawn: list[list[PlacedReport]]) -> None:
    """Batches that come again, orders that are mixed and append times that fall change nothing of that."""
    plain = PlainLoad()
    bundles, folded = nothing()
    for batch in drawn:
        before = dict(plain.bundles)
        plain.fold(batch, ResourceWeights())
        columns, samples = samples_of(batch)
        result = fold_samples(bundles, folded, columns)
        compare(result, plain)
        for number, bundle_id in enumerate(BUNDLES):
            has_news = plain.bundles.get(bundle_id) is not before.get(bundle_id)
            place = result.newest[number]
            assert (place != NONE) == has_news
            assert not has_news or is_newest(plain.bundles[bundle_id], *samples[place])
        bundles, folded = result.bundles, result.folded


@st.composite
def cut_logs(draw: st.DrawFn) -> list[list[PlacedReport]]:
    """Batches of two partitions, each cut anywhere; times fall and rise, and a bundle is reported in one partition."""

    def report_at(position: Position) -> PlacedReport:
        bundles = draw(st.lists(loads, max_size=4, unique_by=lambda each: each.bundle_id))
        homes = [each for each in bundles if BUNDLES.index(each.bundle_id) % 2 == position.partition]
        return PlacedReport(position, draw(st.sampled_from(NODES)), 1, _NO_RESOURCES, "1", homes)

    return [draw(st.permutations(batch)) for batch in cut_partitions(draw, report_at)]


@given(cut_logs())
def test_cuts_change_nothing_also_where_clocks_go_back(drawn: list[list[PlacedReport]]) -> None:
    """A sample that was appended with an earlier time than one before it counts, also in the same batch with that."""
    plain = PlainLoad()
    plain.fold([report for batch in drawn for report in batch], ResourceWeights())
    result = FoldedSamples(*nothing(), np.zeros(0, np.int64))
    for batch in drawn:
        result = fold_samples(result.bundles, result.folded, samples_of(batch)[0])
    compare(result, plain)


def test_averages_go_on_beyond_their_greatest_number_of_samples() -> None:
    """A backlog brings thousands of samples of one bundle in one batch."""
    batch = [
        PlacedReport(
            Position(number, 0, number),
            "n0",
            1,
            _NO_RESOURCES,
            "1",
            [BundleLoad(BUNDLES[1], number / 3, 0.1 * number, 1.0, 0.0, 1, 1, 1, 1)],
        )
        for number in range(1_500)
    ]
    plain = PlainLoad()
    plain.fold(batch, ResourceWeights())
    compare(fold_samples(*nothing(), samples_of(batch)[0]), plain)


@given(st.lists(st.builds(MessageLoad, *[st.floats()] * 4), max_size=8))
def test_samples_are_plausible_as_single_ones_are(loads: list[MessageLoad]) -> None:
    """Also those that are no numbers, infinite or negative."""
    found = are_plausible(np.array(loads).reshape(-1, 4).T)
    assert found.tolist() == [implausible_load(load) is None for load in loads]

"""The fold over columns against the plain fold of one sample after the other: equal bits, whatever the batches are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT, implausible_load
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

BUNDLES = 4


class Sample(NamedTuple):
    """A sample; reports count in the order of the first three fields."""

    append_time_ms: int
    partition: int
    offset: int
    bundle: int
    node: int
    load: MessageLoad


class Plain:
    """One bundle, folded sample by sample."""

    def __init__(self) -> None:
        """Before the first report."""
        self.node = self.first_report_time_ms = self.moved_at_ms = NONE
        self.averages: BundleAverages = UNSEEN_BUNDLE
        self.folded: dict[int, int] = {}
        self.newest: Sample | None = None

    def add(self, sample: Sample) -> None:
        """Add a sample, unless it was added before."""
        if sample.offset <= self.folded.get(sample.partition, -1):
            return
        if self.node == NONE:
            self.first_report_time_ms = sample.append_time_ms
        elif self.node != sample.node:
            self.moved_at_ms = sample.append_time_ms
        self.node, self.newest = sample.node, sample
        self.averages = self.averages.add(sample.load)
        self.folded[sample.partition] = sample.offset


figures = st.sampled_from([0.0, 0.1, 1e3 / 3, 1e9 / 7]) | st.floats(0, GREATEST_AMOUNT)
samples = st.builds(
    Sample,
    st.integers(1_000, 1_004),  # append times that do not rise with the offsets, too
    st.integers(0, 1),
    st.integers(0, 1 << 62) | st.integers(0, 6),
    st.integers(0, BUNDLES - 1),
    st.integers(0, 2),
    st.builds(MessageLoad, *[figures] * 4),
)
reports = st.lists(samples, unique_by=lambda each: each[:4], max_size=40)


def columns(batch: Sequence[Sample]) -> SampleColumns:
    """The samples as columns."""
    numbers = np.array([each[:5] for each in batch], np.int64).reshape(-1, 5).T
    time_ms, partition, offset, bundle, node = numbers
    return SampleColumns(bundle, node, time_ms, partition, offset, np.array([s.load for s in batch]).reshape(-1, 4).T)


@st.composite
def batches(draw: st.DrawFn) -> list[list[Sample]]:
    """Samples in batches, of which some come again, each in an order of its own."""
    drawn = draw(reports)
    cuts = sorted(draw(st.lists(st.integers(0, len(drawn)), max_size=4)))
    cut = [drawn[start:end] for start, end in zip([0, *cuts], [*cuts, len(drawn)], strict=True)]
    again = draw(st.lists(st.sampled_from(cut), max_size=2))
    return [draw(st.permutations(batch)) for batch in (*cut, *again)]


def nothing() -> tuple[BundleColumns, FoldedOffsets]:
    """The state before the first report."""
    empty = np.zeros(0, np.int64)
    return unseen_bundles(BUNDLES), FoldedOffsets(empty, empty, empty)


def averages(average: AverageColumns, bundle: int) -> tuple[int, MessageLoad]:
    """One bundle's average."""
    return int(average.sample_count[bundle]), MessageLoad(*map(float, average.load[:, bundle]))


def compare(result: FoldedSamples, batch: Sequence[Sample], plain: Sequence[Plain]) -> None:
    """Every value of every bundle, to the bit."""
    made = result.bundles
    for bundle, each in enumerate(plain):
        seen = made.node[bundle], made.first_report_time_ms[bundle], made.moved_at_ms[bundle]
        assert seen == (each.node, each.first_report_time_ms, each.moved_at_ms)
        for average, expected in (
            (made.short_term, each.averages.short_term),
            (made.long_term, each.averages.long_term),
        ):
            assert averages(average, bundle) == (expected.sample_count, expected.load)
        if result.newest[bundle] != NONE:
            assert batch[result.newest[bundle]] == each.newest
    folded = dict(
        zip(
            zip(result.folded.bundle.tolist(), result.folded.partition.tolist(), strict=True),
            result.folded.offset.tolist(),
            strict=True,
        )
    )
    assert list(folded) == sorted(folded)
    assert folded == {
        (bundle, partition): offset for bundle, each in enumerate(plain) for partition, offset in each.folded.items()
    }


@given(batches())
def test_columns_fold_as_single_samples_do(drawn: list[list[Sample]]) -> None:
    """Batches that come again, orders that are mixed and append times that fall change nothing of that."""
    plain = [Plain() for _ in range(BUNDLES)]
    bundles, folded = nothing()
    for batch in drawn:
        before = [each.newest for each in plain]
        for sample in sorted(batch):
            plain[sample.bundle].add(sample)
        result = fold_samples(bundles, folded, columns(batch))
        compare(result, batch, plain)
        changed = [each.newest is not known for each, known in zip(plain, before, strict=True)]
        assert (result.newest != NONE).tolist() == changed
        bundles, folded = result.bundles, result.folded


def test_averages_go_on_beyond_their_greatest_number_of_samples() -> None:
    """A backlog brings thousands of samples of one bundle in one batch."""
    batch = [
        Sample(number, 0, number, 1, 0, MessageLoad(number / 3, 1.0, 0.1 * number, 0.0)) for number in range(1_500)
    ]
    plain = [Plain() for _ in range(BUNDLES)]
    for sample in batch:
        plain[1].add(sample)
    compare(fold_samples(*nothing(), columns(batch)), batch, plain)


@given(st.lists(st.builds(MessageLoad, *[st.floats()] * 4), max_size=8))
def test_samples_are_plausible_as_single_ones_are(loads: list[MessageLoad]) -> None:
    """Also those that are no numbers, infinite or negative."""
    found = are_plausible(np.array(loads).reshape(-1, 4).T)
    assert found.tolist() == [implausible_load(load) is None for load in loads]

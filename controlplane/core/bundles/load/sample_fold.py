"""The fold of many samples of many bundles at once, over columns: bit for bit what adding them one by one gives.

Samples come from load reports. A round adds the n-th new sample of every bundle that has one, by the operations of
:meth:`controlplane.core.bundles.load.averages.TimeAverage.add` in the same order; so there are as many rounds as the
bundle with most new samples has. Everything else is sorted once. Bundles and nodes are numbers here, which the caller
gives to their names; all columns are one-dimensional and of int64 unless stated.
"""

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from controlplane.core.bundles.load.averages import (
    LONG_TERM_SAMPLES,
    SHORT_TERM_SAMPLES,
    UNSEEN_LOAD,
)
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT

Numbers: TypeAlias = NDArray[np.int64]
Loads: TypeAlias = NDArray[np.float64]
"""Of shape (4, number of samples or bundles): the fields of a
:class:`controlplane.core.bundles.load.averages.MessageLoad` in their order."""
Choice: TypeAlias = NDArray[np.bool_]

NONE: Final = -1
"""Stands for no node, no time and no sample."""


class AverageColumns(NamedTuple):
    """An average of each bundle.

    Attributes:
        sample_count: samples that count; 0 while the load is a default.
        load: the means.
    """

    sample_count: Numbers
    load: Loads


class BundleColumns(NamedTuple):
    """What is kept of each bundle; a bundle's number is its place.

    Attributes:
        node: the node that has reported it last; NONE before its first report.
        first_report_time_ms: append time of the first report that counted.
        moved_at_ms: append time of the present node's first report; NONE if it never moved.
        short_term: see :class:`controlplane.core.bundles.load.averages.BundleAverages`.
        long_term: likewise.
    """

    node: Numbers
    first_report_time_ms: Numbers
    moved_at_ms: Numbers
    short_term: AverageColumns
    long_term: AverageColumns


class FoldedOffsets(NamedTuple):
    """Up to which offset of a partition the reports are in a bundle's averages, ascending by bundle and partition."""

    bundle: Numbers
    partition: Numbers
    offset: Numbers


class SampleColumns(NamedTuple):
    """Samples in any order, of reports that count: none is of a process that another one of its node has replaced.

    Attributes:
        bundle: its bundle; a report has one sample of a bundle.
        node: the node that has reported it.
        append_time_ms: of the report.
        partition: of the report.
        offset: of the report.
        load: the figures, all of them plausible.
    """

    bundle: Numbers
    node: Numbers
    append_time_ms: Numbers
    partition: Numbers
    offset: Numbers
    load: Loads


class FoldedSamples(NamedTuple):
    """The result of a fold.

    Attributes:
        bundles: every bundle.
        folded: every bundle's offsets.
        newest: for each bundle the place of its newest sample that counted; NONE if none did.
    """

    bundles: BundleColumns
    folded: FoldedOffsets
    newest: Numbers


def unseen_bundles(count: int) -> BundleColumns:
    """Bundles before their first report."""
    nothing = np.full(count, NONE, np.int64)

    def average() -> AverageColumns:
        return AverageColumns(np.zeros(count, np.int64), np.repeat(np.array(UNSEEN_LOAD)[:, None], count, axis=1))

    return BundleColumns(nothing, nothing.copy(), nothing.copy(), average(), average())


def are_plausible(load: Loads) -> Choice:
    """For each sample whether all of its figures can be true (``plausible.implausible_load``)."""
    return np.asarray(((load >= 0) & (load <= GREATEST_AMOUNT)).all(axis=0))


def fold_samples(bundles: BundleColumns, folded: FoldedOffsets, samples: SampleColumns) -> FoldedSamples:
    """Fold samples in. One that was folded before changes nothing, in whichever batch it comes again.

    The time is that of sorting the samples and the offsets, and of copying the bundles.

    Args:
        bundles: every bundle that is known or has a sample.
        folded: what is in their averages.
        samples: the samples.
    """
    counted = _in_order(samples, _new_by_pair(folded, samples))
    bundle = samples.bundle[counted]
    begins = np.append(True, bundle[1:] != bundle[:-1])[: len(bundle)]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(bundle))[: len(first)] - 1
    newest = np.full(len(bundles.node), NONE, np.int64)
    newest[bundle[last]] = counted[last]
    rounds = _rounds(first, len(bundle))
    load = samples.load[:, counted]
    return FoldedSamples(
        BundleColumns(
            *_whereabouts(bundles, samples, counted, first, last),
            _averaged(bundles.short_term, SHORT_TERM_SAMPLES, bundle, load, rounds),
            _averaged(bundles.long_term, LONG_TERM_SAMPLES, bundle, load, rounds),
        ),
        _offsets_after(folded, samples, counted),
        newest,
    )


def _new_by_pair(folded: FoldedOffsets, samples: SampleColumns) -> Numbers:
    """The samples whose offset is beyond all that its bundle has had of its partition, in the order of these three."""
    known = len(folded.bundle)
    bundle = np.concatenate([folded.bundle, samples.bundle])
    partition = np.concatenate([folded.partition, samples.partition])
    offset = np.concatenate([folded.offset, samples.offset])
    is_sample = np.arange(len(bundle)) >= known
    by_pair = np.lexsort((offset, is_sample, partition, bundle))  # what is folded comes first
    opens = _opens(bundle[by_pair], partition[by_pair])
    leading = _leading(offset[by_pair], opens)
    before = np.append(0, np.maximum.accumulate(leading)[:-1])[: len(leading)]
    is_new = is_sample[by_pair] & (opens | (leading > before))
    return by_pair[is_new] - known


def _in_order(samples: SampleColumns, by_pair: Numbers) -> Numbers:
    """The same samples, bundle by bundle in the order in which they count.

    Within a partition that is the order of the offsets, whatever clocks did: batches, which are cut by offsets, cannot
    change it. Of several partitions the one whose next sample was appended first goes on; so a sample stands where the
    latest append time up to it in its partition is.
    """
    bundle, partition = samples.bundle[by_pair], samples.partition[by_pair]
    opens = _opens(bundle, partition)
    latest = np.maximum.accumulate(_leading(samples.append_time_ms[by_pair], opens)) % (len(by_pair) + 1)
    return by_pair[np.lexsort((partition, latest, bundle))]  # stable: the offsets of a partition stay in order


def _opens(bundle: Numbers, partition: Numbers) -> Choice:
    """For each place whether a pair of bundle and partition begins there."""
    return np.append(True, (bundle[1:] != bundle[:-1]) | (partition[1:] != partition[:-1]))[: len(bundle)]


def _leading(values: Numbers, opens: Choice) -> Numbers:
    """The ranks of values, led by the numbers of their pairs: a running maximum does not reach into the next pair."""
    _, rank = np.unique(values, return_inverse=True)
    return np.cumsum(opens) * (len(values) + 1) + rank


def _rounds(first: Numbers, count: int) -> list[Numbers]:
    """For each n the places of the samples that are the n-th of their bundles."""
    lengths = np.diff(np.append(first, count))
    nth = np.arange(count) - np.repeat(first, lengths)
    by_round = np.argsort(nth, kind="stable")
    bounds = np.cumsum(np.bincount(nth))
    return np.split(by_round, bounds[:-1]) if count else []


def _averaged(
    before: AverageColumns, max_samples: int, bundle: Numbers, load: Loads, rounds: list[Numbers]
) -> AverageColumns:
    sample_count, mean = before.sample_count.copy(), before.load.copy()
    for places in rounds:
        of = bundle[places]
        count = np.minimum(sample_count[of] + 1, max_samples)
        mean[:, of] = ((count - 1) * mean[:, of] + load[:, places]) / count
        sample_count[of] = count
    return AverageColumns(sample_count, mean)


def _whereabouts(
    bundles: BundleColumns, samples: SampleColumns, counted: Numbers, first: Numbers, last: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """The columns ``node``, ``first_report_time_ms`` and ``moved_at_ms`` after the samples that count.

    ``first`` and ``last`` are the places of each bundle's first and last one.
    """
    bundle, reporter, time_ms = samples.bundle[counted], samples.node[counted], samples.append_time_ms[counted]
    former = np.append(NONE, reporter[:-1])[: len(reporter)]
    former[first] = bundles.node[bundle[first]]
    node, first_ms, moved_ms = bundles.node.copy(), bundles.first_report_time_ms.copy(), bundles.moved_at_ms.copy()
    node[bundle[last]] = reporter[last]
    appears = first[former[first] == NONE]
    first_ms[bundle[appears]] = time_ms[appears]
    moves = np.flatnonzero((former != NONE) & (former != reporter))
    is_last_move = np.append(bundle[moves][1:] != bundle[moves][:-1], True)[: len(moves)]
    last_moves = moves[is_last_move]
    moved_ms[bundle[last_moves]] = time_ms[last_moves]
    return node, first_ms, moved_ms


def _offsets_after(folded: FoldedOffsets, samples: SampleColumns, counted: Numbers) -> FoldedOffsets:
    bundle = np.concatenate([folded.bundle, samples.bundle[counted]])
    partition = np.concatenate([folded.partition, samples.partition[counted]])
    offset = np.concatenate([folded.offset, samples.offset[counted]])
    order = np.lexsort((offset, partition, bundle))
    bundle, partition, offset = bundle[order], partition[order], offset[order]
    is_last = np.append((bundle[1:] != bundle[:-1]) | (partition[1:] != partition[:-1]), True)[: len(order)]
    return FoldedOffsets(bundle[is_last], partition[is_last], offset[is_last])

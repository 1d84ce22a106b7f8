"""The order of bundles by load (Pulsar's compareTo of BundleData and of NamespaceBundleStats).

Small differences do not count, so that bundles do not change places in every report. Since Pulsar's #24772 each figure
is rounded to a grid and the grid's numbers are compared: an order that sorts can rely on. Before it, two figures were
equal if they differed by no more than a threshold; then three bundles can be ordered in a circle, and a sort's result
depends on the order in which it was given them.
"""

import math
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.reports import BundleLoad

Compare = Callable[[int, int], int]
"""The order of two elements, named by their positions: negative, 0 or positive, as the first is less loaded or more."""

_GREATEST_INT64: Final = 2**63 - 1
_LEAST_INT64: Final = -(2**63)


class Difference(NamedTuple):
    """The differences that count as none: bytes per second, messages per second, and numbers of things."""

    throughput: float
    message_rate: float
    participants: int
    cache_bytes: int


_RESOLUTION: Final = Difference(1e5, 100.0, 500, 100_000)


class NearTies(Enum):
    """How two nearly equal loads compare."""

    GRID = "grid"
    """By the number of the grid's cell (since #24772)."""
    THRESHOLD = "threshold"
    """As equal, if they differ by no more than the threshold (before #24772)."""


def stats_figures(stats: BundleLoad) -> tuple[float, ...]:
    """What a bundle's latest sample is compared by, the first figure first."""
    return (
        stats.throughput_in_bytes_per_s,
        stats.throughput_out_bytes_per_s,
        stats.message_rate_in_per_s + stats.message_rate_out_per_s,
        stats.topic_count + stats.consumer_count + stats.producer_count,
        stats.cache_size_bytes,
    )


def history_figures(history: BundleHistory) -> tuple[float, ...]:
    """What a bundle's averages are compared by: those of the short term, then those of the long term."""
    return _load_figures(history.averages.short_term.load) + _load_figures(history.averages.long_term.load)


def stats_cells(stats: BundleLoad) -> tuple[int, ...]:
    """The cells of :func:`stats_figures`: rates are rounded to the nearest one, halves up, and counts downwards."""
    *rates, participants, cache = stats_figures(stats)
    throughput, message_rate, participants_per_cell, bytes_per_cell = _RESOLUTION
    return (
        _rounded(rates[0] / throughput),
        _rounded(rates[1] / throughput),
        _rounded(rates[2] / message_rate),
        _quotient(int(participants), participants_per_cell),
        _quotient(int(cache), bytes_per_cell),
    )


def history_cells(history: BundleHistory) -> tuple[int, ...]:
    """The cells of :func:`history_figures`: each is rounded towards 0."""
    steps = (_RESOLUTION.throughput, _RESOLUTION.throughput, _RESOLUTION.message_rate) * 2
    return tuple(_truncated(figure / step) for figure, step in zip(history_figures(history), steps, strict=True))


def by_stats(samples: Sequence[BundleLoad], near_ties: NearTies = NearTies.GRID) -> Compare:
    """The order of samples by load."""
    if near_ties is NearTies.GRID:
        return partial(_by_cells, ranks([stats_cells(each) for each in samples]))
    allowed = (*(_RESOLUTION.throughput,) * 2, *_RESOLUTION[1:])
    return partial(_by_thresholds, [stats_figures(each) for each in samples], allowed)


def by_history(histories: Sequence[BundleHistory], near_ties: NearTies = NearTies.GRID) -> Compare:
    """The order of bundles by their averages."""
    if near_ties is NearTies.GRID:
        return partial(_by_cells, ranks([history_cells(each) for each in histories]))
    allowed = (_RESOLUTION.throughput, _RESOLUTION.throughput, _RESOLUTION.message_rate) * 2
    return partial(_by_thresholds, [history_figures(each) for each in histories], allowed)


def ranks(cells: Sequence[tuple[int, ...]]) -> list[int]:
    """The number of different cells below each one, so that a comparison is that of two numbers."""
    numbers = {cell: number for number, cell in enumerate(sorted(set(cells)))}
    return [numbers[cell] for cell in cells]


def _load_figures(load: MessageLoad) -> tuple[float, float, float]:
    return load.throughput_in_bytes_per_s, load.throughput_out_bytes_per_s, load.message_rate_per_s


def _by_cells(numbers: Sequence[int], first: int, second: int) -> int:
    return (numbers[first] > numbers[second]) - (numbers[first] < numbers[second])


def _by_thresholds(figures: Sequence[tuple[float, ...]], allowed: Sequence[float], first: int, second: int) -> int:
    for one, other, most in zip(figures[first], figures[second], allowed, strict=True):
        if abs(one - other) > most:
            return 1 if one > other else -1
    return 0


def _rounded(value: float) -> int:
    # The half is compared after the subtraction, which is exact; value + 0.5 would round 0.49999999999999994 up.
    if math.isnan(value) or math.isinf(value):
        return _limited(value)
    floor = math.floor(value)
    return _limited(floor + (value - floor >= 0.5))  # noqa: PLR2004 - a half


def _truncated(value: float) -> int:
    return _limited(value if math.isnan(value) or math.isinf(value) else math.trunc(value))


def _limited(value: float) -> int:
    # As a cast to 64 bits in Pulsar's language: NaN is 0, and what is beyond the range is its end.
    if math.isnan(value):
        return 0
    return int(max(_LEAST_INT64, min(value, _GREATEST_INT64)))


def _quotient(dividend: int, divisor: int) -> int:
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)

"""Ticks to the rows of ``ticks``, and back: a row for each partition and minute of append time."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from controlplane.core.membership.inputs import Tick
from streaming.contracts.records import TICK_ARRAYS

MINUTE_MS: Final = 60_000


class PlacedTick(NamedTuple):
    """A tick with the place and time of its record."""

    partition: int
    offset: int
    append_time_ms: int
    tick: Tick


def tick_rows(ticks: Iterable[PlacedTick]) -> Iterator[tuple[object, ...]]:
    """The rows of ``ticks``, without the day, in the order of partition and minute."""
    by_minute: dict[tuple[int, int], list[PlacedTick]] = {}
    for each in sorted(ticks, key=lambda each: (each.partition, each.offset)):
        minute_ms = each.append_time_ms // MINUTE_MS * MINUTE_MS
        by_minute.setdefault((each.partition, minute_ms), []).append(each)
    for (partition, minute_ms), together in sorted(by_minute.items()):
        times_ms = [each.append_time_ms for each in together]
        yield (
            partition,
            together[0].offset,
            together[-1].offset,
            minute_ms,
            len(together),
            times_ms[0],
            times_ms[-1],
            max((later - earlier for earlier, later in pairwise(times_ms)), default=None),
            [each.offset for each in together],
            times_ms,
            *([getattr(each.tick, name) for each in together] for name in TICK_ARRAYS),
        )


def ticks_of(row: Mapping[str, Any]) -> Iterator[PlacedTick]:
    """The ticks of which a row was made, in the order of their offsets."""
    fields = zip(*(row[column] for column in TICK_ARRAYS.values()), strict=True)
    for offset, append_time_ms, values in zip(row["offsets"], row["append_times_ms"], fields, strict=True):
        yield PlacedTick(row["partition"], offset, append_time_ms, Tick(**dict(zip(TICK_ARRAYS, values, strict=True))))

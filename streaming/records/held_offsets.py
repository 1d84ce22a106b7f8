"""Which offsets of a topic's partition its tables hold, without a hole.

A hole stays, or is filled soon. The tables of one batch are committed one after the other, and the dead letter of a
refused record is read back from Kafka: a reader that comes in between misses what is on its way, for some seconds. What
stays is a gap that was accepted, and rows or a dead letter that were forgotten, days later.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PLACES: Final = pa.schema([("partition", pa.int64()), ("offset", pa.int64()), ("append_time_ms", pa.int64())])
"""Where records stand."""
_AWAITED_MS: Final = 600_000
"""For how long in log time a hole may still be filled."""


class Extent(NamedTuple):
    """The first offset of a run, and the one after its last."""

    first: int
    end: int


class Held(NamedTuple):
    """The records of one partition that a table holds; there is one at least.

    Attributes:
        offsets: in order, each once.
        append_times_ms: of each of them.
    """

    offsets: NDArray[np.int64]
    append_times_ms: NDArray[np.int64]


def held_by_partition(places: pa.Table) -> dict[int, Held]:
    """The records of each partition that has any.

    Args:
        places: rows of :data:`PLACES`, in any order; a record may be there twice.
    """
    partitions, offsets, times_ms = (places[name].to_numpy() for name in PLACES.names)
    found = {}
    for partition in np.unique(partitions).tolist():
        is_mine = partitions == partition
        found[partition] = _once(offsets[is_mine], times_ms[is_mine])
    return found


def newest_run(parts: Sequence[Held], gaps: Iterable[range], newest_ms: int) -> Extent:
    """The newest run of offsets: behind the last hole that stays, and before the first that may still be filled.

    Args:
        parts: what each of the tables holds of the partition; of dead letters, the places of the refused records.
        gaps: the offsets that were passed because Kafka had them no longer.
        newest_ms: the newest append time in the log.
    """
    offsets, times_ms = _once(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    holes = np.flatnonzero(np.diff(offsets) > 1)
    begins, ends = offsets[holes] + 1, offsets[holes + 1]
    stays = newest_ms - times_ms[holes + 1] >= _AWAITED_MS
    for gap in gaps:
        stays |= (begins < gap.stop) & (ends > gap.start)
    awaited = holes[~stays]
    last = int(awaited[0]) if len(awaited) else len(offsets) - 1
    before = holes[holes < last]
    first = int(before[-1]) + 1 if len(before) else 0
    return Extent(int(offsets[first]), int(offsets[last]) + 1)


def _once(offsets: NDArray[np.int64], times_ms: NDArray[np.int64]) -> Held:
    in_order, places = np.unique(offsets, return_index=True)
    return Held(in_order, times_ms[places])

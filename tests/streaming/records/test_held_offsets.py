"""Which holes of a partition stay, and which are awaited. No table is read."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.records.held_offsets import PLACES, Extent, Held, held_by_partition, newest_run

OFFSETS = st.sets(st.integers(0, 30), min_size=1)


def held(*offsets: int, time_ms: int = 0) -> Held:
    """Records at these offsets, appended at one time."""
    return Held(np.array(offsets, np.int64), np.full(len(offsets), time_ms, np.int64))


def then(first: Held, second: Held) -> Held:
    """One part behind another."""
    return Held(*(np.concatenate(columns) for columns in zip(first, second, strict=True)))


@pytest.mark.parametrize(
    ("parts", "gaps", "run"),
    [
        ([held(3, 4, 5)], [], Extent(3, 6)),
        ([held(3, 5), held(4)], [], Extent(3, 6)),
        # A dead letter that may still come, and one that will not.
        ([held(3, 5, time_ms=1)], [], Extent(3, 4)),
        ([held(3, 5, time_ms=0)], [], Extent(5, 6)),
        ([held(3, 5), held(1)], [], Extent(5, 6)),
        # One of two tables is behind.
        ([held(3, 5), held(4, 7, time_ms=1)], [], Extent(3, 6)),
        ([then(held(1, 3, 4), held(6, 8, time_ms=1))], [], Extent(3, 5)),
        # A gap that was accepted, with a refused record beside it, and some elsewhere.
        ([held(3, 9, time_ms=1)], [range(4, 8)], Extent(9, 10)),
        ([held(3, 9, time_ms=1)], [range(4), range(9, 12)], Extent(3, 4)),
    ],
)
def test_a_hole_stays_or_is_awaited(parts: list[Held], gaps: list[range], run: Extent) -> None:
    """The run begins behind the last one that stays, and ends before the first one that is awaited."""
    assert newest_run(parts, gaps, newest_ms=600_000) == run


@given(OFFSETS, OFFSETS, st.lists(st.integers(0, 30), max_size=2), st.booleans())
def test_a_run_has_no_hole(first: set[int], second: set[int], gaps: list[int], is_late: bool) -> None:
    """Every offset of it is held by one of the tables; nothing is held twice because it is in both."""
    parts = [held(*sorted(first)), held(*sorted(second), time_ms=1)]
    start, end = newest_run(parts, [range(gap, gap + 2) for gap in gaps], 600_000 if is_late else 0)
    assert start < end
    assert set(range(start, end)) <= first | second


def test_records_are_told_apart_by_partition() -> None:
    """In order, each once."""
    places = pa.table([[1, 0, 1, 1], [7, 9, 5, 7], [70, 90, 50, 70]], schema=PLACES)
    found = {partition: [column.tolist() for column in each] for partition, each in held_by_partition(places).items()}
    assert found == {0: [[9], [90]], 1: [[5, 7], [50, 70]]}

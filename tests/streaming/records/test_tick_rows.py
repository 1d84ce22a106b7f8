"""Ticks as rows of minutes: each comes back as it was, and the view over them tells what a look at each does."""

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.membership.inputs import Tick
from controlplane.core.values.identifiers import Epoch, Seq
from streaming.contracts.records import TICK_ARRAYS, TICKS_TABLE
from streaming.contracts.views import TICKS_VIEW
from streaming.records.record_rows import table_of
from streaming.records.tick_rows import PlacedTick, tick_rows, ticks_of
from streaming.sql.local import LocalEngine
from streaming.tables.created_tables import create_missing
from streaming.tables.day_files import without_day
from tests.helpers.log_tables import add_ticks

MINUTE_MS = 60_000
COLUMNS = [name for name in TICKS_TABLE.columns if name != "day"]

numbers = st.integers(0, 9)
sent = st.builds(Tick, st.sampled_from(("c1", "c2")), numbers, st.builds(Seq, numbers), st.builds(Epoch, numbers))
steps = st.tuples(st.integers(0, 1), st.integers(1, 3), st.sampled_from((0, 100, 29_000, 60_000)), sent)
"""Partition, offsets and milliseconds since the tick before, and the tick."""


def placed(log: Sequence[tuple[int, int, int, Tick]]) -> list[PlacedTick]:
    """The ticks of a log in which time does not go back."""
    ends: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 1_700_000_000_000))
    ticks = []
    for partition, offsets, later_ms, tick in log:
        offset, time_ms = ends[partition]
        ends[partition] = offset + offsets, time_ms + later_ms
        ticks.append(PlacedTick(partition, *ends[partition], tick))
    return ticks


def test_every_field_has_a_column() -> None:
    """Also one that comes later, or ticks would come back without it."""
    assert tuple(TICK_ARRAYS) == Tick._fields
    assert set(TICK_ARRAYS.values()) <= set(TICKS_TABLE.columns)


def test_a_row_by_hand() -> None:
    """Three ticks of a minute, and one of the next."""
    first, second, third = (Tick("c1", number, Seq(7), Epoch(number)) for number in (1, 2, 3))
    ticks = [PlacedTick(4, 12, 60_900, second), PlacedTick(4, 10, 60_100, first), PlacedTick(4, 13, 119_999, third)]
    row, next_row = (
        dict(zip(COLUMNS, row, strict=True)) for row in tick_rows([PlacedTick(4, 14, 120_000, first), *ticks])
    )
    assert row == {
        "partition": 4,
        "first_offset": 10,
        "last_offset": 13,
        "minute_ms": 60_000,
        "tick_count": 3,
        "first_append_time_ms": 60_100,
        "last_append_time_ms": 119_999,
        "longest_gap_ms": 59_099,
        "offsets": [10, 12, 13],
        "append_times_ms": [60_100, 60_900, 119_999],
        "controller_ids": ["c1", "c1", "c1"],
        "sent_at_ms": [1, 2, 3],
        "seqs": [7, 7, 7],
        "table_epochs": [1, 2, 3],
    }
    assert (next_row["minute_ms"], next_row["longest_gap_ms"], next_row["offsets"]) == (120_000, None, [14])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 500_000), sent)))
def test_ticks_come_back(times: Sequence[tuple[int, int, Tick]]) -> None:
    """Each once and exactly, also where a broker's clock goes back, in rows that follow one another by their keys."""
    ticks = [PlacedTick(partition, number, time_ms, tick) for number, (partition, time_ms, tick) in enumerate(times)]
    rows = table_of(list(tick_rows(ticks)), without_day(TICKS_TABLE)).to_pylist()
    back = [tick for row in rows for tick in ticks_of(row)]
    assert sorted(back) == sorted(ticks)
    keys = [(row["partition"], row["minute_ms"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert all(row["tick_count"] == len(row["offsets"]) for row in rows)


@given(st.lists(steps, max_size=30), st.integers(1, 7))
@settings(max_examples=25, deadline=None)
def test_the_view_is_a_look_at_each_tick(log: Sequence[tuple[int, int, int, Tick]], batch_size: int) -> None:
    """However the ticks were divided into batches."""
    ticks = placed(log)
    wanted = []
    for partition in (0, 1):
        mine = [each for each in ticks if each.partition == partition]
        gaps = {later.offset: later.append_time_ms - earlier.append_time_ms for earlier, later in pairwise(mine)}
        for minute_ms in sorted({each.append_time_ms // MINUTE_MS * MINUTE_MS for each in mine}):
            those = [each for each in mine if each.append_time_ms // MINUTE_MS * MINUTE_MS == minute_ms]
            senders = sorted({each.tick.controller_id for each in those})
            longest_ms = max((gaps[each.offset] for each in those if each.offset in gaps), default=None)
            ends = (those[0].offset, those[-1].offset)
            wanted.append((partition, minute_ms, len(those), senders, *ends, longest_ms))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        create_missing(folder, bucket_count=2)
        for start in range(0, len(ticks), batch_size):
            add_ticks(folder, ticks[start : start + batch_size])
        with closing(LocalEngine(folder)) as engine:
            found = engine.run(f"select * from {TICKS_VIEW.name} order by partition, minute_ms")  # noqa: S608 - ours
    assert found.columns == tuple(name for name, _ in TICKS_VIEW.columns)
    assert list(found.rows) == wanted

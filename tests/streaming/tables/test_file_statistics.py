"""What commits say of files: readers that pass over files by it find every row, and do pass over files."""

import atexit
import functools
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.errors import InvariantViolationError
from streaming.contracts.records import DECISIONS_TABLE, MEMBERSHIP_TABLE
from streaming.records.decision_rows import decision_rows
from streaming.tables.created_tables import create_missing
from streaming.tables.file_statistics import FileStatistics
from streaming.tables.table_files import TableFileWriter
from streaming.tables.table_writer import TableWriter
from tests.helpers.decision_table import recorded
from tests.helpers.eventful import eventful_decisions

DECISIONS = to_arrow_schema(DECISIONS_TABLE.schema)
SCHEMA = to_arrow_schema(MEMBERSHIP_TABLE.schema)
FIRST = ("topic", "partition", "offset", "append_time_ms", "kind", "node_id")
"""The last two may be null, and the last one has no bounds."""

integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)
texts = st.text(max_size=40) | st.sampled_from(
    ("", "n", "n1", "\U00020000", "n" * 32, "n" * 33, "n" * 32 + "\U0010ffff", "\uffff", 'quoted"\\\n')
)
values = st.tuples(texts, st.integers(-(2**31), 2**31 - 1), integers, integers, st.none() | texts, st.none() | texts)
files = st.lists(
    st.tuples(st.sampled_from(("2026-01-01", "2026-01-02")), st.lists(st.lists(values, max_size=4), max_size=2)),
    min_size=1,
    max_size=4,
)


def rows_of(part: Sequence[tuple[object, ...]]) -> pa.Table:
    """Rows of ``membership`` with these values in the first columns and nulls in the others."""
    return pa.Table.from_pylist([dict(zip(FIRST, row, strict=True)) for row in part], schema=SCHEMA)


@functools.cache
def empty_table() -> Path:
    """An empty ``membership``, made once, because every example needs one."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    create_missing(folder, bucket_count=2)
    return folder / MEMBERSHIP_TABLE.name


@given(files, st.data())
@settings(max_examples=60, deadline=None)
def test_a_filtered_read_is_the_filter_of_all_rows(
    written: Sequence[tuple[str, Sequence[Sequence[tuple[object, ...]]]]], data: st.DataObject
) -> None:
    """Of any column, any comparison, and values that stand in the files or beside them."""
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copytree(empty_table(), Path(temporary) / MEMBERSHIP_TABLE.name)
        table = TableWriter(Path(temporary), MEMBERSHIP_TABLE, "app")
        told = []
        for day, parts in written:
            writer = TableFileWriter(table.folder, "day", day, SCHEMA)
            for part in parts:
                writer.write(rows_of(part))
            told.append(writer.close())
        table.append_files(told, 1)
        everything = pa.concat_tables(
            [rows_of(part) for _, parts in written for part in parts] or [SCHEMA.empty_table()]
        )
        number = data.draw(st.integers(0, len(FIRST) - 1))
        column = pc.field(FIRST[number])
        there = [row[number] for _, parts in written for part in parts for row in part if row[number] is not None]
        kinds = (texts, st.integers(-(2**31), 2**31 - 1), integers, integers, texts, texts)
        value = data.draw(kinds[number] | st.sampled_from(there) if there else kinds[number])
        for asked in (column == value, column < value, column >= value, column != value, column.is_null()):
            wanted = everything.filter(asked).select(FIRST).to_pylist()
            assert sorted(table.rows(asked, FIRST).to_pylist(), key=repr) == sorted(wanted, key=repr)


def test_files_are_passed_over(tmp_path: Path) -> None:
    """Bounds stand in the commit, of the columns that are asked for, and a reader opens one file of three."""
    create_missing(tmp_path, bucket_count=2)
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app")
    told = []
    for number in range(3):
        writer = TableFileWriter(table.folder, "day", "2026-01-01", SCHEMA)
        writer.write(rows_of([("membership", 0, 10 * number + 1, 5, kind, "n") for kind in "jk"]))
        writer.write(
            rows_of([("membership", 0, 10 * number, 6, None, "m"), ("membership", 0, 10 * number + 2, 6, None, "o")])
        )
        told.append(writer.close())
    table.append_files(told, 1)
    there = DeltaTable(str(table.folder))
    actions = pa.table(there.get_add_actions(flatten=True)).sort_by("min.offset").to_pylist()
    assert [(each["min.offset"], each["max.offset"]) for each in actions] == [(0, 2), (10, 12), (20, 22)]
    assert [(each["min.kind"], each["max.kind"], each["null_count.kind"]) for each in actions] == [("j", "k", 2)] * 3
    asked = there.to_pyarrow_dataset().get_fragments(filter=pc.field("offset") == 11)
    assert [Path(fragment.path).name for fragment in asked] == [Path(told[1].path).name]


def test_what_is_told_of_decisions(tmp_path: Path) -> None:
    """Their seq, by which the newest one is found, and no column behind it."""
    decisions = eventful_decisions()
    writer = TableFileWriter(tmp_path, "day", "2026-01-01", DECISIONS)
    rows = [dict(zip(DECISIONS.names, row, strict=True)) for row in decision_rows(recorded(decisions))]
    writer.write(pa.Table.from_pylist(rows, schema=DECISIONS))
    told = json.loads(writer.close().statistics)
    first, last = rows[0], rows[-1]
    assert told["numRecords"] == len(decisions)
    assert (
        list(told["minValues"]) == list(told["nullCount"]) == ["topic", "partition", "offset", "append_time_ms", "seq"]
    )
    assert told["minValues"] == {name: first[name] for name in told["minValues"]}
    assert told["maxValues"] == {name: last[name] for name in told["minValues"]}


def test_long_texts_are_cut() -> None:
    """So that they stay bounds: below the least text, above the greatest, and above any that goes on greatest."""
    statistics = FileStatistics([pa.field("name", pa.string())])
    statistics.add(pa.table({"name": ["b" * 40, "a" * 33, None]}))
    statistics.add(pa.table({"name": ["b" * 32 + "\U0010ffff\U0010ffffb"]}))
    told = json.loads(statistics.as_json())
    assert told == {
        "numRecords": 4,
        "minValues": {"name": "a" * 32},
        "maxValues": {"name": "b" * 32 + 3 * "\U0010ffff"},
        "nullCount": {"name": 1},
    }


def test_a_column_without_bounds_is_a_defect() -> None:
    """A reader would take what is missing for a bound, and pass over rows in silence."""
    with pytest.raises(InvariantViolationError, match="the column weight is of the type double"):
        FileStatistics([pa.field("weight", pa.float64())])

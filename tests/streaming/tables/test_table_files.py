"""Files that executors write: what is read back is what was written, also of a file of before a column came."""

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.contracts.records import LOAD_REPORTS_TABLE, MEMBERSHIP_TABLE
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath
from streaming.tables.created_tables import create_missing
from streaming.tables.table_files import TableFileWriter, read_files, read_in_parts
from streaming.tables.table_writer import TableWriter
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.written_files import SCHEMA, bundle_rows, written


def test_rows_come_back(tmp_path: Path) -> None:
    """Of several files, and of none; nested columns, and the column that is a folder."""
    first, second, third = bundle_rows("a"), bundle_rows("b", "c"), bundle_rows("d")
    files = [written(tmp_path, first, second), written(tmp_path, third)]
    assert [(file.partition, json.loads(file.statistics)["numRecords"]) for file in files] == [("3", 3), ("3", 1)]
    assert all((tmp_path / file.path).stat().st_size == file.size_bytes for file in files)
    bucket = pa.scalar(3, pa.int32())
    paths = [file.path for file in files]
    assert read_files(tmp_path, paths, "bucket", bucket, SCHEMA) == pa.concat_tables([first, second, third])
    assert read_files(tmp_path, [], "bucket", bucket, SCHEMA) == SCHEMA.empty_table()


def test_a_column_that_came_later_is_null(tmp_path: Path) -> None:
    """In a file of before."""
    file = written(tmp_path, bundle_rows("a"))
    older = pq.ParquetFile(tmp_path / file.path).read().drop_columns(["moved_at_ms"])
    pq.write_table(older, tmp_path / file.path)
    rows = read_files(tmp_path, [file.path], "bucket", pa.scalar(3, pa.int32()), SCHEMA)
    assert rows.schema == SCHEMA
    assert rows["moved_at_ms"].to_pylist() == [None]


def test_rows_come_in_parts(tmp_path: Path) -> None:
    """Those columns and fields that are asked for; a part has so many values of its longest column, or one row."""
    schema = to_arrow_schema(LOAD_REPORTS_TABLE.schema)
    loads = [bundle_load(f"kv/{number}")._asdict() for number in range(12)]
    given = {"topic": "t", "partition": 1, "append_time_ms": 3, "cpu": {"usage": 1.0, "limit": 9.0}}
    rows = [{**dict.fromkeys(schema.names), **given, "offset": n, "bundles": loads[: 2 * n]} for n in range(7)]
    writer = TableFileWriter(tmp_path, "day", "2026-01-02", schema)
    for part in (rows[:4], rows[4:]):
        writer.write(pa.Table.from_pylist(part, schema=schema))
    path = writer.close().path
    for values_at_once, sizes in ((1, [1] * 7), (8, [2, 2, 1, 1, 1]), (1_000, [4, 3])):
        parts = list(read_in_parts(tmp_path, path, {"offset", "bundles.bundle_id", "cpu.limit"}, values_at_once))
        assert [part.num_rows for part in parts] == sizes
        assert [row for part in parts for row in part.to_pylist()] == [
            {
                "offset": offset,
                "cpu": {"limit": 9.0},
                "bundles": [{"bundle_id": f"kv/{number}"} for number in range(2 * offset)],
            }
            for offset in range(7)
        ]


def test_history_is_divided_by_day(tmp_path: Path) -> None:
    """Every column of a table of records stands in the folder of its day."""
    create_missing(tmp_path, bucket_count=2)
    for contract in (MEMBERSHIP_TABLE, LOAD_REPORTS_TABLE):
        assert_kept(tmp_path, contract)


def assert_kept(folder: StoragePath, contract: TableContract) -> None:
    """A row whose columns may all be null is there after the commit."""
    table = TableWriter(folder, contract, "app")
    schema = to_arrow_schema(contract.schema)
    place = {"topic": "t", "partition": 1, "offset": 2, "append_time_ms": 3, "kind": "joined"}
    row = pa.Table.from_pylist([{name: place.get(name) for name in schema.names}], schema=schema)
    writer = TableFileWriter(table.folder, "day", "2026-01-02", schema)
    writer.write(row)
    table.append_files([writer.close()], 1)
    (kept,) = table.rows().to_pylist()
    assert kept == {**row.to_pylist()[0], "day": date(2026, 1, 2)}

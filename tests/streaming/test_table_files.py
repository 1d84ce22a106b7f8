"""Files that executors write: what is read back is what was written, also of a file of before a column came."""

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.errors import FencedError
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE, MEMBERSHIP_TABLE
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath
from streaming.tables.created_tables import create_missing
from streaming.tables.driver_tables import DriverTable
from streaming.tables.table_files import TableFileWriter, WrittenFile, file_rows, read_files, read_in_parts
from tests.helpers.load_logs import report
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.plain_load import PlainLoad, bundle_row

SCHEMA = to_arrow_schema(BUNDLE_LOAD_TABLE.schema)


def bundle_rows(*names: str, bucket: int = 3) -> pa.Table:
    """Rows of ``bundle_load`` in one bucket."""
    plain = PlainLoad()
    plain.fold([report("n1", 7, [bundle_load(f"kv/{name}") for name in names])], ResourceWeights())
    rows = [dict(zip(SCHEMA.names, bundle_row(each), strict=True)) for each in plain.bundles.values()]
    return pa.Table.from_pylist([{**row, "bucket": bucket} for row in rows], schema=SCHEMA)


def written(folder: StoragePath, *parts: pa.Table, bucket: int = 3) -> WrittenFile:
    """A file with these rows."""
    writer = TableFileWriter(folder, "bucket", str(bucket), SCHEMA)
    for part in parts:
        writer.write(part)
    return writer.close()


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


def test_positions_stand_beside_rows(tmp_path: Path) -> None:
    """Several names in one commit, also in one without rows; each keeps its number until it gets another."""
    create_missing(tmp_path, bucket_count=2)
    table = DriverTable(tmp_path, MEMBERSHIP_TABLE, "app")
    schema = to_arrow_schema(MEMBERSHIP_TABLE.schema)
    writer = TableFileWriter(table.folder, "day", "2026-01-02", schema)
    place = {"topic": "t", "partition": 1, "offset": 2, "append_time_ms": 3, "kind": "joined"}
    writer.write(pa.Table.from_pylist([{name: place.get(name) for name in schema.names}], schema=schema))
    table.append_files_at([writer.close()], {"app": 1, "app[0]": 7})
    table.append_files_at([], {"app[0]": 8, "app[1]": 5})
    again = DriverTable(tmp_path, MEMBERSHIP_TABLE, "app")
    assert [again.position(name) for name in ("app", "app[0]", "app[1]", "app[2]")] == [1, 8, 5, None]
    assert (again.written_version, len(again.files(["path"])), again.rows().num_rows) == (1, 1, 1)


def test_files_are_told_and_committed(tmp_path: Path) -> None:
    """Buckets of which files were written are replaced, others stay; a version is found again."""
    create_missing(tmp_path, bucket_count=2)
    table = DriverTable(tmp_path, BUNDLE_LOAD_TABLE, "app")
    assert not table.has(0)
    table.replace_buckets(
        [written(table.folder, bundle_rows("a")), written(table.folder, bundle_rows("x", bucket=4), bucket=4)], 0, {}
    )
    replacing = written(table.folder, bundle_rows("a", "b"))
    assert WrittenFile(**file_rows([replacing]).to_pylist()[0]) == replacing
    assert table.position("beside") is None
    table.replace_buckets([replacing], 2, {"beside": 7})
    table.replace_buckets([], 3, {"beside": 8})
    assert [table.has(version) for version in (1, 2, 3, 4)] == [True, True, True, False]
    assert table.files_of_buckets() == {3: [replacing.path], 4: table.files_of_buckets()[4]}
    again = DriverTable(tmp_path, BUNDLE_LOAD_TABLE, "other")
    assert (again.written_version, again.position("beside")) == (None, 8)
    assert sorted(again.rows()["bundle_id"].to_pylist()) == ["kv/a", "kv/b", "kv/x"]


def test_history_is_divided_by_day(tmp_path: Path) -> None:
    """Every column of a table of records stands in the folder of its day."""
    create_missing(tmp_path, bucket_count=2)
    for contract in (MEMBERSHIP_TABLE, LOAD_REPORTS_TABLE):
        assert_kept(tmp_path, contract)


def assert_kept(folder: StoragePath, contract: TableContract) -> None:
    """A row whose columns may all be null is there after the commit."""
    table = DriverTable(folder, contract, "app")
    schema = to_arrow_schema(contract.schema)
    place = {"topic": "t", "partition": 1, "offset": 2, "append_time_ms": 3, "kind": "joined"}
    row = pa.Table.from_pylist([{name: place.get(name) for name in schema.names}], schema=schema)
    writer = TableFileWriter(table.folder, "day", "2026-01-02", schema)
    writer.write(row)
    table.append_files([writer.close()], 1)
    (kept,) = table.rows().to_pylist()
    assert kept == {**row.to_pylist()[0], "day": date(2026, 1, 2)}


def test_a_second_writer_of_one_name_is_found(tmp_path: Path) -> None:
    """What it has written is not written again; what opens the table afterwards goes on behind it."""
    create_missing(tmp_path, bucket_count=2)
    first, second = (DriverTable(tmp_path, BROKER_LOAD_TABLE, "app") for _ in range(2))
    first.replace((), 0)
    with pytest.raises(FencedError, match="is at 0 of app, and this process has left it at None"):
        second.replace((), 0)
    first.replace((), 1)
    again = DriverTable(tmp_path, BROKER_LOAD_TABLE, "app")
    assert again.has(1)
    assert not again.was_written_by_another
    again.replace((), 2)


def test_a_second_writer_of_another_name_is_found(tmp_path: Path) -> None:
    """A table has one writer at a time; one that comes after it knows that there was another."""
    create_missing(tmp_path, bucket_count=2)
    first = DriverTable(tmp_path, BROKER_LOAD_TABLE, "app")
    assert not first.was_written_by_another
    another = DriverTable(tmp_path, BROKER_LOAD_TABLE, "another")
    another.replace((), 7)
    with pytest.raises(FencedError, match=r"of controlplane\.writer"):
        first.replace((), 1)
    assert DriverTable(tmp_path, BROKER_LOAD_TABLE, "app").was_written_by_another
    assert not DriverTable(tmp_path, BROKER_LOAD_TABLE, "another").was_written_by_another


def test_of_two_that_write_at_once_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either wrote."""
    create_missing(tmp_path, bucket_count=2)
    first, second = (DriverTable(tmp_path, BROKER_LOAD_TABLE, "app") for _ in range(2))

    def other_is_faster(app_transactions: list[Transaction]) -> CommitProperties:
        monkeypatch.undo()
        first.replace((), 0)
        return CommitProperties(app_transactions=app_transactions)

    monkeypatch.setattr("streaming.tables.driver_tables.CommitProperties", other_is_faster)
    with pytest.raises(CommitFailedError, match="Concurrent transaction failed"):
        second.replace((), 0)

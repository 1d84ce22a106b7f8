"""Tables as the driver commits them: what it has written, and who else may not write meanwhile."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.errors import FencedError, LogContinuityError
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import MEMBERSHIP_TABLE
from streaming.tables.app_transactions import app_transactions
from streaming.tables.created_tables import create_missing
from streaming.tables.table_files import TableFileWriter, WrittenFile, file_rows
from streaming.tables.table_writer import TableWriter
from tests.helpers.local_paths import local
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.written_files import bundle_rows, written


def test_positions_stand_beside_rows(tmp_path: Path) -> None:
    """Several names in one commit, also in one without rows; each keeps its number until it gets another."""
    create_missing(tmp_path, bucket_count=2)
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app")
    schema = to_arrow_schema(MEMBERSHIP_TABLE.schema)
    writer = TableFileWriter(table.folder, "day", "2026-01-02", schema)
    place = {"topic": "t", "partition": 1, "offset": 2, "append_time_ms": 3, "kind": "joined"}
    writer.write(pa.Table.from_pylist([{name: place.get(name) for name in schema.names}], schema=schema))
    table.append_files_at([writer.close()], {"app": 1, "app[0]": 7})
    table.append_files_at([], {"app[0]": 8, "app[1]": 5})
    again = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app")
    assert [again.position(name) for name in ("app", "app[0]", "app[1]", "app[2]")] == [1, 8, 5, None]
    assert (again.written_version, len(again.files(["path"])), again.rows().num_rows) == (1, 1, 1)


@pytest.mark.parametrize("seed", range(5))
def test_many_positions_are_those_that_are_asked_for_one_by_one(tmp_path: Path, seed: int) -> None:
    """Whether a checkpoint of the log, later commits, both, or none of them names them."""
    create_missing(tmp_path, bucket_count=2)
    source = random.Random(seed)
    names = [f"app[{number}]" for number in range(40)]
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app")
    for number in range(12):
        table.append_files_at([], dict.fromkeys(source.sample(names, source.randint(1, 20)), number))
        if source.random() < seed / 10:
            DeltaTable(local(table.folder)).create_checkpoint()
    one_by_one = {name: DeltaTable(local(table.folder)).transaction_version(name) for name in names}
    many = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app").positions(names)
    assert many == {name: number for name, number in one_by_one.items() if number is not None}
    assert len(many) > 8
    checkpoints = list((local(table.folder) / "_delta_log").glob("*.checkpoint.parquet"))
    for checkpoint in checkpoints:
        checkpoint.rename(checkpoint.with_suffix(".of-another-kind"))
    assert (app_transactions(table.folder, 12) is None) == bool(checkpoints)


def test_a_table_is_read_once_for_many_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of loads keeps one for each node: thousands of readings of the log would delay its first step."""
    create_missing(tmp_path, bucket_count=2)
    asked: list[str] = []
    ask = DeltaTable.transaction_version

    def asked_for(table: DeltaTable, name: str) -> int | None:
        asked.append(name)
        return ask(table, name)

    monkeypatch.setattr(DeltaTable, "transaction_version", asked_for)
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "app")
    positions = {f"app[{number}]": number for number in range(50)}
    assert table.positions(positions) == {}
    table.append_files_at([], positions)
    assert TableWriter(tmp_path, MEMBERSHIP_TABLE, "app").positions(positions) == positions
    assert len(asked) < 10


def test_files_are_told_and_committed(tmp_path: Path) -> None:
    """Buckets of which files were written are replaced, others stay; a version is found again."""
    create_missing(tmp_path, bucket_count=2)
    table = TableWriter(tmp_path, BUNDLE_LOAD_TABLE, "app")
    assert not table.has(0)
    table.replace_bucket_files(
        [written(table.folder, bundle_rows("a")), written(table.folder, bundle_rows("x", bucket=4), bucket=4)], 0, {}
    )
    replacing = written(table.folder, bundle_rows("a", "b"))
    assert WrittenFile(**file_rows([replacing]).to_pylist()[0]) == replacing
    assert table.position("beside") is None
    table.replace_bucket_files([replacing], 2, {"beside": 7})
    table.replace_bucket_files([], 3, {"beside": 8})
    assert [table.has(version) for version in (1, 2, 3, 4)] == [True, True, True, False]
    assert table.files_of_buckets() == {3: [replacing.path], 4: table.files_of_buckets()[4]}
    again = TableWriter(tmp_path, BUNDLE_LOAD_TABLE, "other")
    assert (again.written_version, again.position("beside")) == (None, 8)
    assert sorted(again.rows()["bundle_id"].to_pylist()) == ["kv/a", "kv/b", "kv/x"]


def test_a_second_writer_of_one_name_is_found(tmp_path: Path) -> None:
    """What it has written is not written again; what opens the table afterwards goes on behind it."""
    create_missing(tmp_path, bucket_count=2)
    first, second = (TableWriter(tmp_path, BROKER_LOAD_TABLE, "app") for _ in range(2))
    first.replace((), 0)
    with pytest.raises(FencedError, match="is at 0 of app, and this process has left it at None"):
        second.replace((), 0)
    first.replace((), 1)
    again = TableWriter(tmp_path, BROKER_LOAD_TABLE, "app")
    assert again.has(1)
    assert not again.was_written_by_another
    again.replace((), 2)


def test_a_second_writer_of_another_name_is_found(tmp_path: Path) -> None:
    """A table has one writer at a time; one that comes after it knows that there was another."""
    create_missing(tmp_path, bucket_count=2)
    first = TableWriter(tmp_path, BROKER_LOAD_TABLE, "app")
    assert not first.was_written_by_another
    another = TableWriter(tmp_path, BROKER_LOAD_TABLE, "another")
    another.replace((), 7)
    with pytest.raises(FencedError, match=r"of controlplane\.writer"):
        first.replace((), 1)
    assert TableWriter(tmp_path, BROKER_LOAD_TABLE, "app").was_written_by_another
    assert not TableWriter(tmp_path, BROKER_LOAD_TABLE, "another").was_written_by_another


def test_a_table_that_is_taken_back_meanwhile_is_written_no_more(tmp_path: Path) -> None:
    """Its positions are as they were, and rows of theirs are gone. What maintenance does is no such thing."""
    create_missing(tmp_path, bucket_count=2)
    add_membership_rows(tmp_path, 1, 0)
    table = TableWriter(tmp_path, MEMBERSHIP_TABLE, "test")
    for version in (1, 2):
        table.append((), version)
        DeltaTable(local(table.folder)).optimize.compact()
        DeltaTable(local(table.folder)).vacuum(dry_run=False, full=True)
    there = DeltaTable(local(table.folder))
    there.restore(0)
    there.optimize.compact()
    for _ in range(2):
        with pytest.raises(LogContinuityError, match="membership was given an older version while the pipeline ran"):
            table.append((), 3)


def test_of_two_that_write_at_once_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked before either wrote."""
    create_missing(tmp_path, bucket_count=2)
    first, second = (TableWriter(tmp_path, BROKER_LOAD_TABLE, "app") for _ in range(2))

    def other_is_faster(app_transactions: list[Transaction]) -> CommitProperties:
        monkeypatch.undo()
        first.replace((), 0)
        return CommitProperties(app_transactions=app_transactions)

    monkeypatch.setattr("streaming.tables.table_writer.CommitProperties", other_is_faster)
    with pytest.raises(CommitFailedError, match="Concurrent transaction failed"):
        second.replace((), 0)

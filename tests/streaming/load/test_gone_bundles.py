"""Rows of ``bundle_load`` of bundles that decisions have ended."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.broker_clocks import CLOCK_ALLOWANCE_MS
from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE
from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.load.bucket_files import StoredBuckets
from streaming.load.gone_bundles import REST_MS, GoneBundles, files_without
from streaming.tables.created_tables import create_missing
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.bundle_changes import change, present
from tests.helpers.killed import KilledError
from tests.helpers.load_logs import report
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.plain_load import PlainLoad, bundle_row

NOW_MS = 100 * REST_MS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Empty tables."""
    create_missing(tmp_path, bucket_count=2)
    return tmp_path


def add(folder: Path, bucket: int, names: tuple[str, ...], time_ms: int, by: TableWriter | None = None) -> None:
    """Bundles that were reported at a time, added by a writer that is there or one of its own."""
    plain = PlainLoad()
    plain.fold([report("n1", time_ms - 100, [bundle_load(name) for name in names])], ResourceWeights())
    rows = (bundle_row(each, bucket) for each in plain.bundles.values())
    table = by or TableWriter(folder, BUNDLE_LOAD_TABLE, "app")
    table.append([dict(zip(BUNDLE_LOAD_TABLE.columns, row, strict=True)) for row in rows], 1)


def left(folder: Path) -> list[str]:
    """The bundles that have a row of ``bundle_load``."""
    names: list[str] = StoredTable(folder, BUNDLE_LOAD_TABLE).rows(columns=["bundle_id"])["bundle_id"].to_pylist()
    return sorted(names)


def started(folder: Path) -> tuple[TableWriter, GoneBundles]:
    """What a process has of it that has just started."""
    table = TableWriter(folder, BUNDLE_LOAD_TABLE, "app")
    return table, GoneBundles(folder, table)


def decided(folder: Path, *changes: dict[str, Any]) -> None:
    """Add rows to ``bundle_changes``."""
    table = TableWriter(folder, BUNDLE_CHANGES_TABLE, "changes")
    table.append(changes, (table.written_version or 0) + 1)


def test_bundles_are_forgotten_until_no_late_report_can_name_them(spark: SparkSession, folder: Path) -> None:
    """Those that have ended long enough ago, and that there are not again; a late report makes a row once more."""
    add(folder, 3, ("kv/again", "kv/long", "kv/moved", "kv/now"), NOW_MS - 9 * REST_MS)
    TableWriter(folder, BUNDLES_TABLE, "app").append([present("kv/again"), present("kv/moved")], 1)
    ended_ms = NOW_MS - 3 * REST_MS
    decided(
        folder,
        change("kv/long", ended_ms, 1),
        change("kv/again", ended_ms, 2),
        change("kv/moved", ended_ms, 3, ended=False),
        change("kv/now", NOW_MS - REST_MS + 1, 4),
    )
    table, gone = started(folder)

    def at(now_ms: int) -> list[str]:
        gone.forget(spark, now_ms, 1)
        return left(folder)

    assert at(NOW_MS) == ["kv/again", "kv/moved", "kv/now"]
    assert at(NOW_MS + 1) == ["kv/again", "kv/moved"]
    add(folder, 3, ("kv/long", "kv/now"), NOW_MS - 9 * REST_MS, table)
    assert at(NOW_MS + 1) == ["kv/again", "kv/long", "kv/moved"], "kv/long was looked for the last time"
    assert [*gone.position.values()] == [3]
    assert at(NOW_MS + REST_MS + 1) == ["kv/again", "kv/long", "kv/moved"]
    assert [*gone.position.values()] == [4]


def test_a_row_that_is_reported_stays(spark: SparkSession, folder: Path) -> None:
    """As long as a late report may name it; one that is dated ahead tells nothing of that."""
    add(folder, 3, ("kv/a",), NOW_MS - REST_MS)
    add(folder, 4, ("kv/ahead",), NOW_MS + CLOCK_ALLOWANCE_MS + 1)
    add(folder, 5, ("kv/barely",), NOW_MS + CLOCK_ALLOWANCE_MS)
    decided(folder, *(change(name, NOW_MS - 2 * REST_MS + 1, 1) for name in ("kv/a", "kv/ahead", "kv/barely")))
    _, gone = started(folder)
    gone.forget(spark, NOW_MS, 1)
    assert left(folder) == ["kv/a", "kv/barely"]


def test_what_ended_during_a_stop_of_days_is_forgotten(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bounded steps, each of which a start goes on behind, also if none of them found a row."""
    monkeypatch.setattr("streaming.load.gone_bundles._STEP_DECISIONS", 2)
    names = [f"kv/{number}" for number in range(5)]
    add(folder, 3, tuple(names), NOW_MS - 900 * REST_MS)
    decided(folder, *(change(name, NOW_MS - (800 - number) * REST_MS, number) for number, name in enumerate(names)))
    _, gone = started(folder)
    gone.forget(spark, NOW_MS, 1)
    assert left(folder) == names[2:]
    _, gone = started(folder)
    gone.forget(spark, NOW_MS, 1)
    assert left(folder) == names[4:]
    decided(folder, change("kv/never reported", NOW_MS - 700 * REST_MS, 5))
    table, gone = started(folder)
    gone.forget(spark, NOW_MS, 1)
    assert left(folder) == []
    table.replace_bucket_files([], 2, gone.position)
    _, gone = started(folder)
    assert [*gone.position.values()] == [5]


def test_a_kill_around_the_removal_changes_nothing(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and position are in one commit: a process that is killed before or behind it leaves both or none."""
    add(folder, 3, ("kv/a", "kv/b"), NOW_MS - 9 * REST_MS)
    decided(folder, change("kv/a", NOW_MS - 3 * REST_MS, 7))
    commit = DeltaTable.create_write_transaction
    _, gone = started(folder)
    for is_written in (False, True):

        def killed(table: DeltaTable, *args: Any, is_written: bool = is_written, **how: Any) -> None:  # noqa: ANN401
            if is_written:
                commit(table, *args, **how)
            raise KilledError

        with monkeypatch.context() as faults:
            faults.setattr(DeltaTable, "create_write_transaction", killed)
            with pytest.raises(KilledError):
                gone.forget(spark, NOW_MS, 1)
        _, gone = started(folder)
        expected = (["kv/b"], 7) if is_written else (["kv/a", "kv/b"], -1)
        assert (left(folder), *gone.position.values()) == expected
    gone.forget(spark, NOW_MS, 1)
    assert left(folder) == ["kv/b"]


def test_a_decision_that_was_dated_ahead_holds_nothing_up(spark: SparkSession, folder: Path) -> None:
    """It is no younger than the next one, whatever the broker's clock said."""
    add(folder, 3, ("kv/a", "kv/b"), NOW_MS - 9 * REST_MS)
    decided(folder, change("kv/a", NOW_MS + 900 * REST_MS, 7), change("kv/b", NOW_MS - 2 * REST_MS, 8, ended=False))
    _, gone = started(folder)
    gone.forget(spark, NOW_MS, 1)
    assert (left(folder), *gone.position.values()) == (["kv/b"], 8)


def test_only_buckets_with_such_rows_are_written(spark: SparkSession, folder: Path) -> None:
    """Each of them without those rows, also if none is left."""
    for bucket, names in ((3, ("kv/a", "kv/b")), (4, ("kv/c",)), (5, ("kv/d",))):
        add(folder, bucket, names, 1_000)
    table = TableWriter(folder, BUNDLE_LOAD_TABLE, "app")
    before = table.files_of_buckets()
    buckets = StoredBuckets(spark, table.folder, before)
    assert files_without(buckets, {"kv/a", "kv/d", "kv/z"}, 1_000 + REST_MS) == []
    files = files_without(buckets, {"kv/a", "kv/d", "kv/z"}, 1_001 + REST_MS)
    assert sorted((file.partition, json.loads(file.statistics)["numRecords"]) for file in files) == [("3", 1), ("5", 0)]
    table.replace_bucket_files(files, 2, {})
    assert left(folder) == ["kv/b", "kv/c"]
    assert table.files_of_buckets()[4] == before[4]

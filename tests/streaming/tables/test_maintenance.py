"""Maintenance joins files, removes those that no version needs, and forgets days: rows that are kept stay."""

import os
import random
import shutil
import threading
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from structlog.testing import capture_logs

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.changes import NODE_CHANGES_TABLE, SLOTS_TABLE
from streaming.contracts.days import start_of_day_ms
from streaming.contracts.loads import BROKER_LOAD_TABLE
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    LOAD_REPORTS_TABLE,
    MEMBERSHIP_TABLE,
)
from streaming.tables.created_tables import create_missing
from streaming.tables.maintenance import kept_from_ms, maintain
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.placed_report import PlacedReport
from tests.helpers.report_table import ReportTable, random_reports


def test_maintenance_joins_files_and_keeps_rows(tables_dir: Path) -> None:
    """Each batch leaves a file for each day; maintenance joins them without touching a row.

    Also those of days that are long over: a table that is made anew from Kafka's log gets rows of all days.
    """
    # The others only take time.
    for table in ALL_TABLES:
        if table is not MEMBERSHIP_TABLE:
            shutil.rmtree(tables_dir / table.name)
    now = datetime.now(UTC)
    days = (now.date(), now.date() - timedelta(days=30))
    for batch_id in range(6):
        add_membership_rows(tables_dir, 2, batch_id, days[batch_id % 2])
    folder = tables_dir / MEMBERSHIP_TABLE.name
    assert len(DeltaTable(folder).file_uris()) == 6
    maintain(tables_dir, now)
    assert len(DeltaTable(folder).file_uris()) == len(days)
    kept = StoredTable(tables_dir, MEMBERSHIP_TABLE)
    assert kept.rows().num_rows == 12
    assert kept.rows(pc.field("offset") == 1).num_rows == 6, "what is told of the joined files is right"


def test_files_that_no_version_needs_are_removed(tmp_path: Path) -> None:
    """Once they are old enough: a task may be about to tell of a young one."""
    create_missing(tmp_path, bucket_count=2)
    for table in ALL_TABLES:
        if table not in (NODE_CHANGES_TABLE, SLOTS_TABLE, DECISIONS_TABLE):
            shutil.rmtree(tmp_path / table.name)
    row = dict.fromkeys(NODE_CHANGES_TABLE.columns)
    numbers = dict.fromkeys(("append_time_ms", "epoch", "term", "decided_at_ms", "number", "incarnation"), 1)
    texts = {"node_id": "n", "change": "admitted", "reason": "", "cause_kinds": [], "causes": []}
    changes = TableWriter(tmp_path, NODE_CHANGES_TABLE, "app")
    today = datetime.now(UTC)
    for seq in range(3):
        changes.append([{**row, **numbers, **texts, "seq": seq, "day": today.date()}], seq)
    orphan = tmp_path / SLOTS_TABLE.name / "bucket=1" / "part-orphan.parquet"
    young = orphan.with_name("part-young.parquet")
    orphan.parent.mkdir()
    for path in (orphan, young):
        path.write_bytes(b"of a task that was repeated")
    os.utime(orphan, (0, 0))
    maintain(tmp_path, today)
    kept = TableWriter(tmp_path, NODE_CHANGES_TABLE, "app")
    assert sorted(kept.rows()["seq"].to_pylist()) == [0, 1, 2]
    assert is_one_file(tmp_path / NODE_CHANGES_TABLE.name)
    assert (orphan.exists(), young.exists()) == (False, True)


def test_nothing_is_removed_where_the_storage_dates_files_long_ago(tmp_path: Path) -> None:
    """A file that an executor has just written would look old; the storage's clock is a day behind the driver's."""
    create_missing(tmp_path, bucket_count=2)
    for table in ALL_TABLES:
        if table is not SLOTS_TABLE:
            shutil.rmtree(tmp_path / table.name)
    written = tmp_path / SLOTS_TABLE.name / "bucket=1" / "part-of-a-batch.parquet"
    written.parent.mkdir()
    written.write_bytes(b"not committed yet")
    os.utime(written, (0, 0))
    with capture_logs() as told:
        maintain(tmp_path, datetime.now(UTC) + timedelta(days=1))
    assert written.exists()
    assert [round(each["behind_s"], -2) for each in told if "behind_s" in each] == [86_400]
    maintain(tmp_path, datetime.now(UTC))
    assert not written.exists()


def test_days_that_are_not_kept_are_forgotten(tmp_path: Path) -> None:
    """Whole days, today among those that are kept; other tables keep all. How far is told, also if it is less later."""
    create_missing(tmp_path, bucket_count=2)
    for table in ALL_TABLES:
        if table not in (MEMBERSHIP_TABLE, DEAD_LETTERS_TABLE, LOAD_REPORTS_TABLE):
            shutil.rmtree(tmp_path / table.name)
    today = datetime(2026, 3, 4, 0, 0, 1, tzinfo=UTC)
    days = [date(2026, 3, day) for day in (1, 2, 3, 4)]
    tables_of_days = (MEMBERSHIP_TABLE, DEAD_LETTERS_TABLE, LOAD_REPORTS_TABLE)
    for table in tables_of_days:
        empty = {field.name: () if field.dataType.typeName() == "array" else None for field in table.fields}
        place = {"topic": "t", "partition": 0, "offset": 0, "append_time_ms": 0}
        texts = {field.name: "" for field in table.fields if not field.nullable and field.name not in place}
        numbers = {name: b"" if name == "raw" else 0 for name in texts if name.startswith(("source_p", "source_o"))}
        numbers |= {"source_append_time_ms": 0, "raw_length_bytes": 0, "raw": b""} if "raw" in texts else {}
        rows = [{**empty, **place, **texts, **numbers, "day": day} for day in days]
        TableWriter(tmp_path, table, "app").append(rows, 1)
    maintain(tmp_path, today, {MEMBERSHIP_TABLE.name: 1, LOAD_REPORTS_TABLE.name: 2})
    add_membership_rows(tmp_path, 1, day=days[0])
    maintain(tmp_path, today, {MEMBERSHIP_TABLE.name: 3})
    told = [kept_from_ms(tmp_path, table) for table in tables_of_days]
    assert told == [start_of_day_ms(days[3]), 0, start_of_day_ms(days[2])]
    kept = {table.name: sorted(StoredTable(tmp_path, table).rows()["day"].to_pylist()) for table in tables_of_days}
    assert kept == {
        MEMBERSHIP_TABLE.name: days[3:],
        DEAD_LETTERS_TABLE.name: days,
        LOAD_REPORTS_TABLE.name: days[2:],
    }


def test_a_damaged_table_does_not_keep_others_from_maintenance(tmp_path: Path) -> None:
    """Its failure is told; a table that cannot be read ends no pipeline that does not read it."""
    create_missing(tmp_path, bucket_count=2)
    for table in ALL_TABLES:
        if table not in (NODE_CHANGES_TABLE, SLOTS_TABLE):
            shutil.rmtree(tmp_path / table.name)
    (tmp_path / SLOTS_TABLE.name / "_delta_log" / f"{0:020}.json").write_text("no json", encoding="utf-8")
    with capture_logs() as told:
        maintain(tmp_path)
    assert [(each["event"].split()[0], each["table"]) for each in told] == [
        ("maintenance", SLOTS_TABLE.name),
        ("table", NODE_CHANGES_TABLE.name),
    ]


@pytest.mark.parametrize("forgets", [False, True])
def test_what_streams_write_beside_maintenance_is_there_once(tables_dir: Path, *, forgets: bool) -> None:
    """It commits in another thread. A commit that it makes Delta refuse, where days are forgotten, is repeated."""
    ended = threading.Event()
    keep_days = {LOAD_REPORTS_TABLE.name: 1} if forgets else {}

    def maintain_all_the_time() -> None:
        while not ended.is_set():
            maintain(tables_dir, keep_days=keep_days)

    def add(reports: Sequence[PlacedReport]) -> None:
        try:
            ReportTable(tables_dir).add(reports)
        except CommitFailedError:
            assert forgets
            add(reports)

    for table in ALL_TABLES:
        if table not in (MEMBERSHIP_TABLE, LOAD_REPORTS_TABLE, BROKER_LOAD_TABLE):
            shutil.rmtree(tables_dir / table.name)
    old, now_ms = random_reports(random.Random(1), 1, 60_000), time.time_ns() // 1_000_000
    today = [each._replace(position=each.position._replace(append_time_ms=now_ms)) for each in old]
    nodes = TableWriter(tables_dir, BROKER_LOAD_TABLE, "nodes")
    thread = threading.Thread(target=maintain_all_the_time)
    thread.start()
    try:
        for batch_id in range(15):
            add_membership_rows(tables_dir, 1, batch_id)
            add([*old, *today])
            nodes.replace((), batch_id)
    finally:
        ended.set()
        thread.join()
    maintain(tables_dir, keep_days=keep_days)
    counts = ((MEMBERSHIP_TABLE, 15), (LOAD_REPORTS_TABLE, 15 if forgets else 30))
    for table, count in counts:
        assert StoredTable(tables_dir, table).rows().num_rows == count
    assert is_one_file(tables_dir / MEMBERSHIP_TABLE.name)
    operations = [commit["operation"] for commit in DeltaTable(tables_dir / LOAD_REPORTS_TABLE.name).history()]
    assert operations.count("OPTIMIZE") > 1
    assert (operations.count("DELETE") > 1) == forgets


def is_one_file(folder: Path) -> bool:
    """Whether the newest version of a table is one file."""
    return len(DeltaTable(folder).file_uris()) == 1

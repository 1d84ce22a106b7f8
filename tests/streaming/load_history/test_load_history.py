"""The history of loads: whatever the cuts, crashes, repeats and late reports, each sample counts once."""

import random
import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.broker_clocks import CLOCK_ALLOWANCE_MS
from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.contracts.views import BUNDLE_LOAD_WINDOWS_VIEW
from streaming.load_history import follower as followers
from streaming.load_history import window_sums
from streaming.load_history.follower import APP_ID, LoadHistoryFollower
from streaming.sql.local import LocalEngine
from streaming.sql.spark import SparkEngine
from streaming.tables.created_tables import create_missing
from streaming.tables.maintenance import maintain
from streaming.tables.table_writer import TableWriter
from tests.helpers.inline_tasks import InlineTasks
from tests.helpers.killed import KilledError
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_windows import Added, added_up, plain_windows
from tests.helpers.report_table import ReportTable, random_reports

WINDOW_MS = 60_000
END_MS = 10**13
DAY_MS = 86_400_000
TASKS = cast("SparkSession", InlineTasks())


def history_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table."""
    rows: list[dict[str, Any]] = TableWriter(folder, BUNDLE_LOAD_HISTORY_TABLE, APP_ID).rows().to_pylist()
    return rows


def expected(reports: Iterable[PlacedReport]) -> dict[tuple[str, str, int], Added]:
    """What the oracle makes of reports."""
    windows = plain_windows(reports, WINDOW_MS).items()
    return {key: window.row() for key, window in windows}


def check_rows(folder: Path, reports: Iterable[PlacedReport]) -> None:
    """The table says what the oracle says, and its rows say who they are."""
    rows = history_rows(folder)
    assert added_up(rows) == expected(reports)
    keys = {tuple(row[name] for name in BUNDLE_LOAD_HISTORY_TABLE.key) for row in rows}
    assert len(keys) == len(rows)
    for row in rows:
        assert row["day"] == datetime.fromtimestamp(row["window_start_ms"] / 1_000, UTC).date()
        assert (row["namespace"], row["window_ms"]) == ("tenant/kv", WINDOW_MS)


@pytest.mark.parametrize("seed", range(25))
def test_each_sample_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """In any cuts into batches and steps, with maintenance in between, and killed before or after any commit."""
    source = random.Random(seed)
    create_missing(tmp_path, bucket_count=2)
    reports = random_reports(source, 150, WINDOW_MS)
    table = ReportTable(tmp_path)
    monkeypatch.setattr(window_sums, "_SAMPLES_AT_ONCE", source.choice([1, 7, 1_000]))
    monkeypatch.setattr(window_sums, "_KEPT_SUMS", source.choice([1, 10, 1_000]))
    monkeypatch.setattr(followers, "_STEP_BYTES", source.choice([1, 50_000, 1_000_000_000]))
    task_count = source.randint(1, 3)
    commit = TableWriter.append_files_at
    crashes = 0
    follower = LoadHistoryFollower(TASKS, tmp_path, WINDOW_MS)

    def killed_at_times(self: TableWriter, *args: Any) -> None:  # noqa: ANN401 - passed on
        if crashes == 0 or source.random() < 0.2:
            raise KilledError
        commit(self, *args)
        if source.random() < 0.2:
            raise KilledError

    def step(until_ms: int) -> None:
        nonlocal crashes, follower
        try:
            follower.step(until_ms)
        except KilledError:
            crashes += 1
            follower = LoadHistoryFollower(TASKS, tmp_path, WINDOW_MS)

    monkeypatch.setattr(TableWriter, "append_files_at", killed_at_times)
    written = 0
    while written < len(reports):
        count = source.randint(1, 30)
        batch = reports[written : written + count]
        table.add(batch, task_count, has_statistics=source.random() < 0.9)
        written += len(batch)
        until_ms = batch[-1].position.append_time_ms + source.choice([0, 0, WINDOW_MS])
        for _ in range(source.randint(0, 2)):
            step(until_ms)
        if source.random() < 0.1:
            for contract in (LOAD_REPORTS_TABLE, BUNDLE_LOAD_HISTORY_TABLE):
                DeltaTable(tmp_path / contract.name).optimize.compact(target_size=source.choice([40_000, None]))
        if source.random() < 0.1:
            follower = LoadHistoryFollower(TASKS, tmp_path, WINDOW_MS)
    monkeypatch.setattr(TableWriter, "append_files_at", commit)
    while follower.step(END_MS):
        pass
    assert crashes > 0
    check_rows(tmp_path, reports)
    assert LoadHistoryFollower(TASKS, tmp_path, WINDOW_MS).step(END_MS) == 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Empty tables."""
    create_missing(tmp_path, bucket_count=2)
    return tmp_path


def follow(folder: Path, until_ms: int = END_MS) -> int:
    """A new run takes a step."""
    return LoadHistoryFollower(TASKS, folder, WINDOW_MS).step(until_ms)


def placed(number: int, time_ms: int, *, node_id: str = "n", incarnation: int = 1, cpu: float = 1.0) -> PlacedReport:
    """A report of one bundle at an offset of partition 0."""
    unknown = ResourceUsage(-1.0, -1.0)
    resources = Resources(ResourceUsage(cpu, 100.0), *(unknown,) * 4)
    bundles = [BundleLoad("tenant/kv/0x0_0x1", 1.0, 2.0, 3.0, 4.0, 5, 6, 7, 8)]
    return PlacedReport(Position(time_ms, 0, number), node_id, incarnation, resources, "1", bundles)


def test_a_window_is_written_when_it_has_ended(folder: Path) -> None:
    """As one row, with all of its reports; what comes late is a further row."""
    table = ReportTable(folder)
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    table.add([placed(0, 10), placed(1, WINDOW_MS - 1)])
    assert follower.step(WINDOW_MS - 1) == 0
    table.add([placed(2, WINDOW_MS - 1), placed(3, WINDOW_MS)])
    table.add([placed(4, 30), placed(5, WINDOW_MS)])
    assert follower.step(WINDOW_MS + 5) == 3
    assert [(row["first_offset"], row["sample_count"]) for row in history_rows(folder)] == [(0, 3)]
    assert follower.step(WINDOW_MS + 5) == 0, "behind a report of a window that has not ended"
    assert follower.step(2 * WINDOW_MS) == 3
    rows = sorted(history_rows(folder), key=lambda row: row["first_offset"])
    assert [tuple(row[name] for name in ("window_start_ms", "first_offset", "sample_count")) for row in rows] == [
        (0, 0, 3),
        (WINDOW_MS, 3, 2),
        (0, 4, 1),
    ]


def test_a_step_reads_what_is_new(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose reports are all written are not opened again, also not by another run if statistics tell it."""
    read = noted_paths(monkeypatch, "read_heads")
    table = ReportTable(folder)
    table.add([placed(0, 10), placed(1, 20)])
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    assert follower.step(END_MS) == 2
    table.add([placed(2, 30)])
    assert (len(read), follower.step(END_MS), len(read)) == (1, 1, 2)
    assert (follower.step(END_MS), len(read)) == (0, 2)
    reports = DeltaTable(folder / LOAD_REPORTS_TABLE.name)
    reports.optimize.compact()
    assert (follow(folder), len(read)) == (0, 2), "delta-rs writes statistics of partitions and offsets"
    table.add([placed(3, 40)])
    assert (follow(folder), len(read)) == (1, 3)


def test_a_step_is_bounded_and_writes_whole_windows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads twice as much as its first window needs at the most, and of later files only where they begin, once."""
    monkeypatch.setattr(followers, "_STEP_BYTES", 1)
    table = ReportTable(folder)
    for number in range(6):
        table.add([placed(2 * number, number * WINDOW_MS), placed(2 * number + 1, number * WINDOW_MS + 1)])
    heads, held = noted_paths(monkeypatch, "read_heads"), noted_paths(monkeypatch, "read_held")
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    steps = [(follower.step(END_MS), follower.has_more, len(heads), len(held)) for _ in range(4)]
    assert steps == [(4, True, 2, 4), (4, True, 4, 4), (4, False, 6, 4), (0, False, 6, 4)]
    assert {(row["window_start_ms"], row["sample_count"]) for row in history_rows(folder)} == {
        (number * WINDOW_MS, 2) for number in range(6)
    }
    assert len(history_rows(folder)) == 6


def test_a_step_passes_no_report_of_a_file_that_it_leaves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's clock was ahead: what stands behind its report waits for that, however much has to be read then."""
    monkeypatch.setattr(followers, "_STEP_BYTES", 1)
    table = ReportTable(folder)
    table.add([placed(0, 0)])
    table.add([placed(1, 9 * WINDOW_MS)])
    for number in range(2, 6):
        table.add([placed(number, number * WINDOW_MS)])
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    assert (follower.step(END_MS), follower.has_more) == (1, True)
    assert (follower.step(9 * WINDOW_MS), follower.has_more) == (0, False), "a report of the window that goes on"
    assert (follower.step(END_MS), follower.has_more) == (5, False)
    assert sorted(row["first_offset"] for row in history_rows(folder)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("ahead_ms", [CLOCK_ALLOWANCE_MS, 60 * WINDOW_MS, 50 * 365 * DAY_MS])
@pytest.mark.parametrize("in_one_file", [False, True])
def test_a_report_that_is_dated_ahead_is_not_waited_for(folder: Path, ahead_ms: int, in_one_file: bool) -> None:
    """It is in a row of its own window, which gets a further one for what comes late; what stands behind it goes on."""
    now_ms = 5 * WINDOW_MS + 7
    reports = [
        placed(0, 4 * WINDOW_MS),
        placed(1, now_ms + ahead_ms),
        placed(2, now_ms + ahead_ms + 1),
        placed(3, 4 * WINDOW_MS + 1),
        placed(4, 5 * WINDOW_MS),
        placed(5, now_ms + ahead_ms + 2),
    ]
    table = ReportTable(folder)
    for batch in [reports] if in_one_file else [[each] for each in reports]:
        table.add(batch)
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    assert (follower.step(now_ms), follower.has_more) == (4, False)
    check_rows(folder, reports[:4])
    assert follower.step(now_ms + 1) == 0, "behind a report of the window that goes on"
    assert (follow(folder, now_ms + 2 * WINDOW_MS), follow(folder)) == (2, 0)
    check_rows(folder, reports)


def test_a_step_that_is_cut_elsewhere_after_a_kill_adds_up_to_the_same(folder: Path, tmp_path: Path) -> None:
    """What is dated ahead by the one clock may have to be waited for by the next one."""
    now_ms = 5 * WINDOW_MS
    reports = [placed(number, now_ms + number % 3 * CLOCK_ALLOWANCE_MS - 1) for number in range(9)]
    table = ReportTable(folder)
    for each in reports:
        table.add([each])
    once = tmp_path / "once"
    shutil.copytree(folder, once, ignore=shutil.ignore_patterns("once"))
    follow(once)
    clocks_ms = (now_ms, now_ms - 20, now_ms, now_ms - 20, END_MS)
    assert [follow(folder, until_ms) for until_ms in clocks_ms] == [1, 2, 1, 2, 3]
    assert added_up(history_rows(folder)) == added_up(history_rows(once)) == expected(reports)


def noted_paths(monkeypatch: pytest.MonkeyPatch, reader: str) -> list[str]:
    """Every file that the follower reads by one of its functions, as often as it does."""
    read: list[str] = []
    function = getattr(followers, reader)

    def noted(session: SparkSession, source: Path, paths: Sequence[str], *others: Any) -> object:  # noqa: ANN401
        read.extend(paths)
        return function(session, source, paths, *others)

    monkeypatch.setattr(followers, reader, noted)
    return read


@pytest.mark.parametrize("restarts", [False, True])
def test_replaced_processes_do_not_count(folder: Path, restarts: bool) -> None:
    """A later process counts from its first report with figures that can be true; what is known survives a restart."""
    table = ReportTable(folder)
    follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)
    steps = [
        ([placed(0, 1), placed(1, 2, incarnation=2, cpu=1e300), placed(2, 3)], {"n": 3}),
        ([placed(3, 4, incarnation=2), placed(4, 5), placed(5, 6, node_id="m")], {"n": 4, "m": 1}),
        ([placed(6, 7), placed(7, 8, incarnation=2), placed(8, 9, incarnation=3)], {"n": 6, "m": 1}),
        ([placed(9, 10, incarnation=2), placed(10, 11, node_id="m", incarnation=1)], {"n": 6, "m": 2}),
    ]
    for reports, counted in steps:
        table.add(reports)
        assert follower.step(END_MS) == len(reports)
        found = dict.fromkeys(counted, 0)
        for row in history_rows(folder):
            found[row["node_id"]] += row["sample_count"]
        assert found == counted
        if restarts:
            follower = LoadHistoryFollower(TASKS, folder, WINDOW_MS)


def test_a_folder_that_was_removed_is_made_anew(folder: Path) -> None:
    """From the reports that are there: those of forgotten days are gone."""
    reports = random_reports(random.Random(1), 80, WINDOW_MS)
    ReportTable(folder).add(reports)
    follow(folder)
    check_rows(folder, reports)
    shutil.rmtree(folder / BUNDLE_LOAD_HISTORY_TABLE.name)
    create_missing(folder, bucket_count=2)
    follow(folder)
    check_rows(folder, reports)
    last_day = max(report.position.append_time_ms for report in reports) // DAY_MS * DAY_MS
    kept = [report for report in reports if report.position.append_time_ms >= last_day]
    assert 0 < len(kept) < len(reports)
    DeltaTable(folder / LOAD_REPORTS_TABLE.name).delete(f"day < '{datetime.fromtimestamp(last_day / 1_000, UTC):%F}'")
    shutil.rmtree(folder / BUNDLE_LOAD_HISTORY_TABLE.name)
    create_missing(folder, bucket_count=2)
    follow(folder)
    check_rows(folder, kept)


def test_maintenance_keeps_what_is_written_and_how_far(folder: Path) -> None:
    """Rows are compacted, days are forgotten, and no report counts again."""
    reports = random_reports(random.Random(2), 120, WINDOW_MS)
    table, now = ReportTable(folder), datetime.fromtimestamp(3 * DAY_MS / 1_000, UTC)
    for start in range(0, len(reports), 20):
        table.add(reports[start : start + 20])
        follow(folder)
    table_of_rows = DeltaTable(folder / BUNDLE_LOAD_HISTORY_TABLE.name)
    before = len(table_of_rows.file_uris())
    maintain(folder, now)
    table_of_rows.update_incremental()
    assert len(table_of_rows.file_uris()) < before
    table_of_rows.create_checkpoint()
    for commit in (folder / BUNDLE_LOAD_HISTORY_TABLE.name / "_delta_log").glob("*.json"):
        if int(commit.stem) < table_of_rows.version():
            commit.unlink()  # as maintenance does after some hours
    assert follow(folder) == 0
    check_rows(folder, reports)
    maintain(folder, now, {BUNDLE_LOAD_HISTORY_TABLE.name: 1})
    rows = history_rows(folder)
    assert {row["day"] for row in rows} == {now.date()}
    assert follow(folder) == 0
    assert len(history_rows(folder)) == len(rows) > 0


def test_executors_write_it_and_both_engines_add_it_up(spark: SparkSession, folder: Path) -> None:
    """As tasks of Spark; the view is what the oracle says, whichever engine is asked."""
    reports = random_reports(random.Random(3), 150, WINDOW_MS)
    table = ReportTable(folder)
    follower = LoadHistoryFollower(spark, folder, WINDOW_MS)
    for start in range(0, len(reports), 40):
        table.add(reports[start : start + 40])
        follower.step(END_MS)
    check_rows(folder, reports)
    statement = "select * from bundle_load_windows order by bundle_id, node_id, window_start_ms"
    with closing(LocalEngine(folder)) as local:
        found = local.run(statement)
    assert found == SparkEngine(spark.newSession(), folder).run(statement)
    assert list(found.columns) == [name for name, _ in BUNDLE_LOAD_WINDOWS_VIEW.columns]
    windows = expected(reports)
    assert [(row[0], row[2], row[3]) for row in found.rows] == sorted(windows)
    assert len(history_rows(folder)) > len(windows), "some windows have several rows"
    rows: Iterable[Sequence[Any]] = found.rows
    for bundle_id, namespace, node_id, start_ms, end_ms, count, *figures in rows:
        samples, sums, maxima, topics, sessions = windows[bundle_id, node_id, start_ms]
        assert (namespace, end_ms - start_ms, count) == ("tenant/kv", WINDOW_MS, samples)
        assert figures == [*(each / samples for each in sums), *maxima, topics, sessions]

"""The pipeline as a process, killed in the middle of its work and started again: nothing lost, nothing twice."""

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, LOAD_REPORTS
from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, message_load
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE, SPLIT_CANDIDATES_TABLE
from streaming.contracts.records import DEAD_LETTERS_TABLE, HEARTBEATS_TABLE, LOAD_REPORTS_TABLE
from streaming.contracts.table import TableContract
from streaming.load.state_rows import bundle_of
from streaming.tables.stored_table import StoredTable
from tests.helpers.pipeline_process import commits, kill, running
from tests.helpers.pipeline_world import PipelineWorld, load_report, random_report
from tests.helpers.polling import poll_until

REPORTS = 120
BATCH_SIZE = 50
DEADLINE_S = 300.0
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]


def _was_written(world: PipelineWorld, table: TableContract, commits_before: int) -> bool:
    return commits(world, table) > commits_before


def written_at_s(world: PipelineWorld, table: TableContract) -> float:
    """When a table got its newest version; a batch of load reports writes ``broker_load`` last."""
    return max(entry.stat().st_mtime for entry in (world.tables_dir / table.name / "_delta_log").glob("*.json"))


def rows_added(world: PipelineWorld, table: TableContract) -> int:
    """How many rows a history table was given, by its log: asking Spark would take the time that the pipeline needs."""
    entries = (world.tables_dir / table.name / "_delta_log").glob("*.json")
    actions = [json.loads(line) for entry in entries for line in entry.read_text(encoding="utf-8").splitlines()]
    return sum(json.loads(action["add"]["stats"])["numRecords"] for action in actions if "add" in action)


def refused_sources(world: PipelineWorld) -> int:
    """How many refused records have a dead letter in the table; a repeated batch writes theirs again."""
    letters = StoredTable(world.tables_dir, DEAD_LETTERS_TABLE).rows()
    return len(letters.group_by(["source_partition", "source_offset"]).aggregate([]))


def averages_in_table(world: PipelineWorld, spark: SparkSession) -> dict[str, BundleAverages]:
    """The table ``bundle_load`` as the core's values."""
    bundles = (bundle_of(row.asDict(recursive=True)) for row in world.rows(spark, BUNDLE_LOAD_TABLE))
    return {bundle.bundle_id: bundle.averages for bundle in bundles}


def expected_averages(reports: list[LoadReport]) -> dict[str, BundleAverages]:
    """The core's fold of one node's reports."""
    averages: dict[str, BundleAverages] = {}
    for report in reports:
        for bundle in report.bundles:
            averages[bundle.bundle_id] = averages.get(bundle.bundle_id, UNSEEN_BUNDLE).add(message_load(bundle))
    return averages


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_killed_pipeline_loses_and_doubles_nothing(
    spark: SparkSession, make_world: Callable[[], PipelineWorld], tmp_path: Path
) -> None:
    """Killed in the middle of a batch and started again, the tables equal the input exactly, averages bit for bit.

    ``test_load_crashes`` ends a batch behind each of its steps, and ``tests.pipeline_chaos`` kills at random.
    """
    world = make_world()
    source = random.Random(11)
    reports = [random_report(source, "node-1", BUNDLE_IDS, number) for number in range(REPORTS)]
    # Without a second node nothing is split.
    world.report(load_report("node-2", number=REPORTS))
    for number, report in enumerate(reports):
        world.report(report)
        if number % 10 == 0:
            world.send(LOAD_REPORTS, b"node-1", b"junk")
        beat = Heartbeat("node-1", 1, number, Epoch(0), NodeRole.DATA)
        world.send(HEARTBEATS, b"node-1", encode_input(beat))
    # After the averages of a batch were replaced, before its candidates are added.
    before = max(commits(world, BUNDLE_LOAD_TABLE), 1)
    with running(world, tmp_path / "pipeline.log", BATCH_SIZE) as process:
        poll_until(partial(_was_written, world, BUNDLE_LOAD_TABLE, before), DEADLINE_S)
        kill(process)

    def all_is_there() -> bool:
        enough = ((LOAD_REPORTS_TABLE, REPORTS + 1), (HEARTBEATS_TABLE, REPORTS))
        return (
            all(rows_added(world, table) >= count for table, count in enough)
            and refused_sources(world) == REPORTS // 10
            and written_at_s(world, BROKER_LOAD_TABLE) > written_at_s(world, LOAD_REPORTS_TABLE)
        )

    expected = expected_averages(reports)
    with running(world, tmp_path / "pipeline.log", BATCH_SIZE):
        poll_until(all_is_there, DEADLINE_S)
    for table, count in ((LOAD_REPORTS_TABLE, REPORTS + 1), (HEARTBEATS_TABLE, REPORTS)):
        rows = world.rows(spark, table)
        assert sorted(row["sent_at_ms"] for row in rows) == list(range(count)), table.name
    assert averages_in_table(world, spark) == expected
    letters = world.rows(spark, DEAD_LETTERS_TABLE)
    assert {(letter["source_topic"], letter["reason"]) for letter in letters} == {(LOAD_REPORTS, "not_avro_framed")}
    assert len({(letter["source_partition"], letter["source_offset"]) for letter in letters}) == REPORTS // 10
    ids = [row["candidate_id"] for row in world.rows(spark, SPLIT_CANDIDATES_TABLE)]
    assert len(ids) == len(set(ids)) > 0

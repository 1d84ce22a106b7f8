"""A driver that is killed between two commits of a batch of load reports, and repeats the batch after its restart."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable, write_deltalake
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession

from controlplane.codec.inputs import encode_input
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig
from streaming.contracts.changes import BUNDLE_CHANGES_TABLE
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.jobs.load import LoadBatchWriter
from streaming.metrics import PipelineMetrics
from streaming.records.decode import RawRow
from streaming.tables.created_tables import create_missing
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.bundle_changes import change
from tests.helpers.killed import KilledError
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report
from tests.helpers.raw_batches import RAW

MIB: Final = 1_048_576
RULES: Final = LoadRuleConfig(
    split=SplitSettings(max_message_rate_per_s=100),
    shed=ThresholdSettings(min_throughput_mib_per_s=1),
    evaluation_interval_ms=1,
)
WRITTEN: Final = (
    LOAD_REPORTS_TABLE,
    BUNDLE_LOAD_TABLE,
    SPLIT_CANDIDATES_TABLE,
    SHED_CANDIDATES_TABLE,
    BROKER_LOAD_TABLE,
)
HOT, WARM, COLD = (f"kv/0x{index}0000000_0x{index + 4}0000000" for index in (0, 4, 8))
DAY_MS: Final = 86_400_000


def batch(session: SparkSession, number: int) -> DataFrame:
    """Reports of two nodes, around a midnight, and a record that is refused."""
    busy = [bundle_load(HOT, 1_000.0 + number, 40.0 * MIB), bundle_load(WARM, 10.0, (20.0 + number) * MIB)]
    reports: list[LoadReport] = [
        load_report("node-1", busy, cpu_percent=90 + number),
        load_report("node-2", [bundle_load(COLD, 5.0 * number)], cpu_percent=10 + number),
    ]
    rows = [
        RawRow(0, 4 * number + place, (number + 1) * DAY_MS + 10 * place - 5, each.node_id.encode(), encode_input(each))
        for place, each in enumerate(reports)
    ]
    rows.append(RawRow(0, 4 * number + 2, (number + 1) * DAY_MS, b"node-1", b"junk"))
    return session.createDataFrame(list(map(tuple, rows)), RAW)


def rows_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table in the order of its key."""
    found = {}
    for contract in WRITTEN:
        rows = StoredTable(folder, contract).rows().to_pylist()
        found[contract.name] = sorted(rows, key=lambda row: tuple(row[name] for name in contract.key))
    return found


@pytest.fixture
def run(spark: SparkSession, world: PipelineWorld) -> Callable[[int], None]:
    """Runs the stream for a batch, in a process of its own."""
    config = world.config(rules=RULES)

    def of_batch(number: int) -> None:
        LoadBatchWriter(spark, config, PipelineMetrics(CollectorRegistry())).write(
            batch(spark, number), "query", number
        )

    return of_batch


EXPECTED: dict[str, list[dict[str, Any]]] = {}


def expected(run: Callable[[int], None], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What a driver writes that lives: found once, in a folder that is then as it was."""
    if not EXPECTED:
        before = folder.rename(folder.with_name("before"))
        create_missing(folder, bucket_count=2)
        for number in (0, 1):
            run(number)
        EXPECTED.update(rows_of(folder))
        shutil.rmtree(folder)
        before.rename(folder)
    return EXPECTED


@pytest.mark.parametrize("commit", range(len(WRITTEN)), ids=[table.name for table in WRITTEN])
def test_a_repeated_batch_leaves_what_one_that_lived_leaves(
    run: Callable[[int], None],
    world: PipelineWorld,
    monkeypatch: pytest.MonkeyPatch,
    commit: int,
) -> None:
    """Each report is kept and counts once, each candidate is kept once, and usages are smoothed once."""
    wanted = expected(run, world.tables_dir)
    run(0)
    seen = 0

    def killed_at(write: Callable[..., None]) -> Callable[..., None]:
        def killed(table: DeltaTable, *args: object, **how: object) -> None:
            nonlocal seen
            seen += 1
            write(table, *args, **how)
            assert table.metadata().name == WRITTEN[seen - 1].name
            if seen == commit + 1:
                raise KilledError

        return killed

    with monkeypatch.context() as faults:
        faults.setattr("streaming.tables.table_writer.write_deltalake", killed_at(write_deltalake))
        faults.setattr(DeltaTable, "create_write_transaction", killed_at(DeltaTable.create_write_transaction))
        with pytest.raises(KilledError):
            run(1)
    run(1)
    found = rows_of(world.tables_dir)
    for name, rows in wanted.items():
        assert found[name] == rows, name
    assert all(wanted.values())


def test_how_far_ended_bundles_are_handled_stands_in_the_next_batch(spark: SparkSession, world: PipelineWorld) -> None:
    """Also if none of them had a row: after a stop no process begins with the first decision again."""
    TableWriter(world.tables_dir, BUNDLE_CHANGES_TABLE, "changes").append([change("kv/gone", 0, 7)], 1)
    stream = LoadBatchWriter(spark, world.config(rules=RULES), PipelineMetrics(CollectorRegistry()))
    handled = []
    for number in (0, 1):
        stream.write(batch(spark, number), "query", number)
        table = StoredTable(world.tables_dir, BUNDLE_LOAD_TABLE)
        handled.append(table.position("controlplane.bundle_load.ended_seq"))
    assert handled == [-1, 7]

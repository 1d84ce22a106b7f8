"""Tables against their contracts, and their maintenance."""

import os
import shutil
import signal
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType
from structlog.testing import capture_logs

from controlplane.config import MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.core.membership.inputs import Tick
from controlplane.errors import PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity.checkpoints import make_checkpoint
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.changes import NODE_CHANGES_TABLE, SLOTS_TABLE
from streaming.contracts.loads import BROKER_LOAD_TABLE
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    LOAD_REPORTS_TABLE,
    MEMBERSHIP_TABLE,
    TABLE_OF_TOPIC,
    tables_of,
)
from streaming.contracts.table import INDEXED_COLUMN_COUNT, TableContract
from streaming.jobs.pipeline import refuse_lost_checkpoints
from streaming.records.tick_rows import PlacedTick
from streaming.session import build_session
from streaming.sql import spark_tables
from streaming.tables.created_tables import create_missing, stored_bucket_count
from streaming.tables.driver_tables import DriverTable
from streaming.tables.maintenance import maintain
from tests.helpers.local_paths import local
from tests.helpers.log_tables import add_ticks
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.pipeline_world import PipelineWorld

BOUNDED = {"integer", "long", "string", "double", "date"}
"""Types of which a commit tells bounds. delta-rs passes over files with another type among the first columns."""


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.name)
def test_contract_holds_together(table: TableContract) -> None:
    """Keys and partitions are columns, every column is explained once, and history is partitioned by day."""
    assert set(table.key) | set(table.partitioned_by) <= set(table.columns)
    assert len(set(table.columns)) == len(table.columns)
    assert all(field.metadata.get("comment", "").strip() for field in table.fields)
    assert table.partitioned_by in ((), ("day",), ("bucket",))
    assert {field.dataType.typeName() for field in table.fields[:INDEXED_COLUMN_COUNT]} <= BOUNDED
    assert table.row.endswith(".")
    assert table.written.endswith(".")


def test_tables_are_what_their_contracts_say(spark: SparkSession, warehouse_dir: Path) -> None:
    """Created tables have the contracts' columns, types, comments and folders; creating them again is harmless."""
    create_missing(warehouse_dir, bucket_count=5)
    for table in ALL_TABLES:
        there = {field.name: field for field in spark_tables.read(spark, warehouse_dir, table).schema.fields}
        assert list(there) == list(table.columns)
        for field in table.fields:
            assert there[field.name].dataType == field.dataType
            assert there[field.name].metadata.get("comment") == field.metadata["comment"]
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{spark_tables.table_path(warehouse_dir, table)}`").collect()[0]
        assert tuple(detail["partitionColumns"]) == table.partitioned_by
        assert detail["properties"].items() >= table.properties.items()
        if table.partitioned_by == ("bucket",):
            assert stored_bucket_count(warehouse_dir, table) == 2, "an existing table keeps its number"


def test_columns_that_came_later_are_added(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of before have nulls in them; a column that another program added is left alone."""
    create_missing(tmp_path, bucket_count=2)
    shutil.rmtree(tmp_path / BROKER_LOAD_TABLE.name)
    extra = StructField("extra", BROKER_LOAD_TABLE.fields[0].dataType)
    older = [each for each in BROKER_LOAD_TABLE.fields if each.name != "smoothed_at_ms"]
    path = spark_tables.table_path(tmp_path, BROKER_LOAD_TABLE)
    spark.createDataFrame([], StructType([*older, extra])).write.format("delta").save(path)
    assert not create_missing(tmp_path, bucket_count=2)
    there = spark_tables.read(spark, tmp_path, BROKER_LOAD_TABLE).schema
    assert {each.name: each.dataType for each in there} == {
        each.name: each.dataType for each in (*BROKER_LOAD_TABLE.fields, extra)
    }


def test_table_of_another_version_is_refused(tmp_path: Path) -> None:
    """Rows must not be written into a table whose columns mean something else."""
    other = StructType(
        [*BROKER_LOAD_TABLE.fields[1:], StructField("extra", BROKER_LOAD_TABLE.fields[0].dataType, nullable=False)]
    )
    DeltaTable.create(tmp_path / BROKER_LOAD_TABLE.name, schema=Schema.from_json(other.json()))
    with pytest.raises(PrerequisiteError, match="broker_load differs from its contract in extra, node_id"):
        create_missing(tmp_path, bucket_count=2)


def test_maintenance_joins_files_and_keeps_rows(warehouse_dir: Path) -> None:
    """Each batch leaves a file; maintenance joins them without touching a row."""
    # The others only take time.
    for table in ALL_TABLES:
        if table is not MEMBERSHIP_TABLE:
            shutil.rmtree(warehouse_dir / table.name)
    for batch_id in range(3):
        add_membership_rows(warehouse_dir, 2, batch_id)
    folder = warehouse_dir / MEMBERSHIP_TABLE.name
    assert len(DeltaTable(folder).file_uris()) == 3
    maintain(warehouse_dir, datetime.now(UTC))
    assert is_one_file(folder)
    kept = DriverTable(warehouse_dir, MEMBERSHIP_TABLE, "")
    assert kept.rows().num_rows == 6
    assert kept.rows(pc.field("offset") == 1).num_rows == 3, "what is told of the joined file is right"


def test_files_that_no_version_needs_are_removed(tmp_path: Path) -> None:
    """Once they are old enough: a task may be about to tell of a young one."""
    create_missing(tmp_path, bucket_count=2)
    for table in ALL_TABLES:
        if table not in (NODE_CHANGES_TABLE, SLOTS_TABLE, DECISIONS_TABLE):
            shutil.rmtree(tmp_path / table.name)
    row = dict.fromkeys(NODE_CHANGES_TABLE.columns)
    numbers = dict.fromkeys(("append_time_ms", "epoch", "term", "decided_at_ms", "number", "incarnation"), 1)
    texts = {"node_id": "n", "change": "admitted", "reason": "", "cause_kinds": [], "causes": []}
    changes = DriverTable(tmp_path, NODE_CHANGES_TABLE, "app")
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
    kept = DriverTable(tmp_path, NODE_CHANGES_TABLE, "app")
    assert sorted(kept.rows()["seq"].to_pylist()) == [0, 1, 2]
    assert is_one_file(tmp_path / NODE_CHANGES_TABLE.name)
    assert (orphan.exists(), young.exists()) == (False, True)


def test_days_that_are_not_kept_are_forgotten(tmp_path: Path) -> None:
    """Whole days, today among those that are kept; other tables keep all."""
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
        DriverTable(tmp_path, table, "app").append(rows, 1)
    maintain(tmp_path, today, {MEMBERSHIP_TABLE.name: 1, LOAD_REPORTS_TABLE.name: 3})
    kept = {table.name: sorted(DriverTable(tmp_path, table, "").rows()["day"].to_pylist()) for table in tables_of_days}
    assert kept == {
        MEMBERSHIP_TABLE.name: days[3:],
        DEAD_LETTERS_TABLE.name: days,
        LOAD_REPORTS_TABLE.name: days[1:],
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


def is_one_file(folder: Path) -> bool:
    """Whether the newest version of a table is one file."""
    return len(DeltaTable(folder).file_uris()) == 1


def test_lost_checkpoint_is_refused(world: PipelineWorld) -> None:
    """Without its checkpoint a stream would begin again and add every row a second time, in silence."""
    config = world.config()
    refuse_lost_checkpoints(config)
    add_membership_rows(world.warehouse_dir, 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    checkpoint = local(config.checkpoint_dir(MEMBERSHIP_TABLE.name))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"app"}', encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=r"membership .* its checkpoint .* is gone"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    made = make_checkpoint(checkpoint, world.cluster.topic(MEMBERSHIP), {0: 1})
    with pytest.raises(PrerequisiteError, match=r"membership .* is not the one with which it was written"):
        refuse_lost_checkpoints(config)
    DriverTable(world.warehouse_dir, MEMBERSHIP_TABLE, made).append_files((), 0)
    refuse_lost_checkpoints(config)
    DriverTable(world.warehouse_dir, MEMBERSHIP_TABLE, made).append_files((), 1)
    with pytest.raises(PrerequisiteError, match=r"membership .* is older than it"):
        refuse_lost_checkpoints(config)
    shutil.rmtree(checkpoint)
    shutil.rmtree(local(world.warehouse_dir / MEMBERSHIP_TABLE.name))
    create_missing(world.warehouse_dir, bucket_count=2)
    add_ticks(world.warehouse_dir, [PlacedTick(0, 0, 0, Tick("c1", 0))])
    with pytest.raises(PrerequisiteError, match=r"ticks .* its checkpoint .*heartbeats is gone"):
        refuse_lost_checkpoints(config)


def test_checkpoints_are_compared_with_tables_that_are_opened_once(
    warehouse_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an object store each time is several requests."""
    opened: list[str] = []
    init = DeltaTable.__init__

    def noted(table: DeltaTable, place: str, **how: Any) -> None:  # noqa: ANN401 - passed on
        opened.append(Path(place).name)
        init(table, place, **how)

    monkeypatch.setattr(DeltaTable, "__init__", noted)
    config = PipelineConfig(ClusterConfig("test"), KafkaConfig("nowhere:1"), warehouse_dir, SparkConfig(jars=()))
    refuse_lost_checkpoints(config)
    assert sorted(opened) == sorted(table.name for topic in TABLE_OF_TOPIC for table in tables_of(topic))


@pytest.mark.usefixtures("spark")
def test_ctrl_c_stays_the_callers() -> None:
    """Spark sets a handler of its own, under which the pipeline would end in the middle of a call, with a trace."""
    handler = signal.getsignal(signal.SIGINT)
    assert not getattr(handler, "__module__", "").startswith("pyspark")


def test_missing_jar_is_named(tmp_path: Path) -> None:
    """Spark would start without the jar and fail later with a class name."""
    with pytest.raises(PrerequisiteError, match=r"none\.jar"):
        build_session("tests", SparkConfig(jars=(tmp_path / "none.jar",)))

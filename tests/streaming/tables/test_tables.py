"""Tables against their contracts."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType
from structlog.testing import capture_logs

from controlplane.errors import PrerequisiteError
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.loads import BROKER_LOAD_TABLE
from streaming.contracts.table import INDEXED_COLUMN_COUNT, TableContract
from streaming.sql import spark_tables
from streaming.tables.created_tables import create_missing, stored_bucket_count

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


def test_tables_are_what_their_contracts_say(spark: SparkSession, tables_dir: Path) -> None:
    """Created tables have the contracts' columns, types, comments and folders; creating them again is harmless."""
    with capture_logs() as lines:
        create_missing(tables_dir, bucket_count=5)
    kept = {(line["table"], line["buckets"], line["asked"]) for line in lines}
    assert kept == {(table.name, "2", 5) for table in ALL_TABLES if table.partitioned_by == ("bucket",)}
    for table in ALL_TABLES:
        there = {field.name: field for field in spark_tables.read(spark, tables_dir, table).schema.fields}
        assert list(there) == list(table.columns)
        for field in table.fields:
            assert there[field.name].dataType == field.dataType
            assert there[field.name].metadata.get("comment") == field.metadata["comment"]
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{spark_tables.table_path(tables_dir, table)}`").collect()[0]
        assert tuple(detail["partitionColumns"]) == table.partitioned_by
        assert detail["properties"].items() >= table.properties.items()
        if table.partitioned_by == ("bucket",):
            assert stored_bucket_count(tables_dir, table) == 2, "an existing table keeps its number"


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

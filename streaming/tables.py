"""Opening Delta tables by their contracts, in a folder each."""

from pathlib import Path
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.errors import PrerequisiteError
from streaming.table_contracts import (
    ALL_TABLES,
    BUCKET_COLUMN,
    BUNDLE_LOAD_TABLE,
    COMMON_PROPERTIES,
    TableContract,
)

_BUCKET_COUNT: Final = "controlplane.bucketCount"


def table_path(warehouse_dir: Path, table: TableContract) -> str:
    """The table's folder."""
    return str(warehouse_dir / table.name)


def exists(session: SparkSession, warehouse_dir: Path, table: TableContract) -> bool:
    """Whether the folder holds a Delta table."""
    return DeltaTable.isDeltaTable(session, table_path(warehouse_dir, table))


def create_missing(session: SparkSession, warehouse_dir: Path, bucket_count: int) -> frozenset[str]:
    """Create the missing tables, and check the columns of the existing ones.

    Args:
        session: creates and reads them.
        warehouse_dir: the folder of their folders.
        bucket_count: into how many buckets ``bundle_load`` is divided, if it is created now. An existing table keeps
            its number.

    Returns:
        The names of the created tables.

    Raises:
        PrerequisiteError: a table has other columns than its contract, or the folder cannot be written.
    """
    try:
        warehouse_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder of the tables, {warehouse_dir}, cannot be made: {error}"
        raise PrerequisiteError(message) from error
    created = set()
    for table in ALL_TABLES:
        if exists(session, warehouse_dir, table):
            _check(session, warehouse_dir, table)
        else:
            _create(session, warehouse_dir, table, bucket_count)
            created.add(table.name)
    return frozenset(created)


def _create(session: SparkSession, warehouse_dir: Path, table: TableContract, bucket_count: int) -> None:
    builder = DeltaTable.create(session).location(table_path(warehouse_dir, table)).addColumns(table.schema)
    if table.partitioned_by:
        builder = builder.partitionedBy(*table.partitioned_by)
    for name, value in {**COMMON_PROPERTIES, **table.properties}.items():
        builder = builder.property(name, value)
    if BUCKET_COLUMN in table.partitioned_by:
        builder = builder.property(_BUCKET_COUNT, str(bucket_count))
    builder.execute()


def stored_bucket_count(session: SparkSession, warehouse_dir: Path) -> int:
    """Into how many buckets ``bundle_load`` was divided when it was created.

    Raises:
        PrerequisiteError: the table does not say it.
    """
    path = table_path(warehouse_dir, BUNDLE_LOAD_TABLE)
    (row,) = DeltaTable.forPath(session, path).detail().select("properties").collect()
    number = row["properties"].get(_BUCKET_COUNT, "")
    if not number.isdigit() or number == "0":
        message = f"the table {path} has lost its property {_BUCKET_COUNT}: restore it, or move the whole "
        raise PrerequisiteError(message + "folder away and start afresh")
    return int(number)


def _check(session: SparkSession, warehouse_dir: Path, table: TableContract) -> None:
    there = {each.name: each.dataType for each in read(session, warehouse_dir, table).schema.fields}
    wanted = {each.name: each.dataType for each in table.fields}
    if there != wanted:
        differing = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
        message = (
            f"the table {table_path(warehouse_dir, table)} differs from its contract in {', '.join(differing)}: it was "
            "written by another version; give the pipeline another folder, or move this one away with its checkpoints"
        )
        raise PrerequisiteError(message)


def read(session: SparkSession, warehouse_dir: Path, table: TableContract) -> DataFrame:
    """The table as it is now."""
    return session.read.format("delta").load(table_path(warehouse_dir, table))


def day_of(time_ms_column: str) -> Column:
    """The UTC day of a column of milliseconds since 1970."""
    return F.to_date(F.timestamp_millis(time_ms_column))

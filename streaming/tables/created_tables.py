"""Creating tables from their contracts, and holding existing ones against them; by delta-rs, without Spark."""

import json
from typing import Final

import structlog
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql.types import StructType

from controlplane.errors import PrerequisiteError
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.table import BUCKET_COLUMN, COMMON_PROPERTIES, TableContract
from streaming.error_texts import HOW_TO_MEND, first_line
from streaming.storage import StoragePath

_log = structlog.get_logger(__name__)

_BUCKET_COUNT: Final = "controlplane.bucketCount"


def create_missing(tables_dir: StoragePath, bucket_count: int) -> frozenset[str]:
    """Create the missing tables, and hold the columns of existing ones against their contracts.

    Columns that a later version added to a contract are added to the table, without rewriting it. Columns that the
    contract does not have are left alone if they may be null: a later version, or another program, added them.

    Args:
        tables_dir: the folder of their folders.
        bucket_count: into how many buckets tables of present rows are divided that are created now. An existing table
            keeps its number.

    Returns:
        The names of the created tables.

    Raises:
        PrerequisiteError: a table cannot hold its contract's rows, or is damaged, or the folder cannot be written.
    """
    try:
        tables_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder of the tables, {tables_dir}, cannot be made: {error}"
        raise PrerequisiteError(message) from error
    created = set()
    for table in ALL_TABLES:
        path = tables_dir / table.name
        try:
            there = _existing(path)
            if there is not None:
                _bring_up_to(table, path, there)
                _tell_other_buckets(table, there, bucket_count)
            else:
                _create(table, path, bucket_count)
                created.add(table.name)
        except (DeltaError, OSError) as error:
            message = f"the table {path} cannot be made or read: {first_line(error)}; {HOW_TO_MEND}"
            raise PrerequisiteError(message) from error
    return frozenset(created)


def stored_bucket_count(tables_dir: StoragePath, table: TableContract) -> int:
    """Into how many buckets a table was divided when it was created.

    Raises:
        PrerequisiteError: the table does not say it.
    """
    path = tables_dir / table.name
    number = DeltaTable(str(path)).metadata().configuration.get(_BUCKET_COUNT, "")
    if not number.isdigit() or number == "0":
        raise PrerequisiteError(f"the table {path} has lost its property {_BUCKET_COUNT}; {HOW_TO_MEND}")
    return int(number)


def _tell_other_buckets(table: TableContract, there: DeltaTable, wanted: int) -> None:
    stored = there.metadata().configuration.get(_BUCKET_COUNT, str(wanted))
    if stored != str(wanted):
        _log.warning(
            "a table keeps the buckets with which it was created", table=table.name, buckets=stored, asked=wanted
        )


def _existing(path: StoragePath) -> DeltaTable | None:
    # While a store does not answer, DeltaTable.is_deltatable holds every thread, also the one that renews the claim.
    try:
        return DeltaTable(str(path))
    except TableNotFoundError:
        return None


def _create(table: TableContract, path: StoragePath, bucket_count: int) -> None:
    buckets = {_BUCKET_COUNT: str(bucket_count)} if BUCKET_COLUMN in table.partitioned_by else {}
    DeltaTable.create(
        str(path),
        schema=Schema.from_json(table.schema.json()),
        mode="error",
        partition_by=list(table.partitioned_by),
        name=table.name,
        description=table.row,
        configuration={**COMMON_PROPERTIES, **table.properties, **buckets},
        raise_if_key_not_exists=False,
    )


def _bring_up_to(table: TableContract, path: StoragePath, there: DeltaTable) -> None:
    stored = StructType.fromJson(json.loads(there.schema().to_json()))
    types = {each.name: each.dataType for each in stored.fields}
    missing = [each for each in table.fields if each.name not in types]
    strange = [each.name for each in stored.fields if each.name not in table.columns and not each.nullable]
    other = [each.name for each in table.fields if types.get(each.name, each.dataType) != each.dataType]
    differing = sorted([*strange, *other, *(each.name for each in missing if not each.nullable)])
    if differing:
        message = (
            f"the table {path} differs from its contract in {', '.join(differing)}: it was altered, or written by "
            f"another version; {HOW_TO_MEND}"
        )
        raise PrerequisiteError(message)
    if missing:
        there.alter.add_columns(Schema.from_json(StructType(missing).json()).fields)

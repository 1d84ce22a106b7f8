"""SQL over the Delta tables, each known by its name."""

import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.values.canonical import CanonicalValue
from controlplane.errors import PrerequisiteError, UserError
from streaming import tables
from streaming.table_contracts import ALL_TABLES, DECISIONS_TABLE, TableContract
from streaming.warehouse import cluster_of


class QueryResult(NamedTuple):
    """The result of a statement: column names, and rows of plain values (dates as ISO text, bytes as hexadecimal)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[CanonicalValue, ...], ...]


def refuse_without_tables(warehouse_dir: Path, cluster: str) -> None:
    """Check without Spark, which starts slowly, that there are tables to query.

    Raises:
        PrerequisiteError: the folder has no tables of this cluster.
    """
    owner = cluster_of(warehouse_dir)
    if not has_tables(warehouse_dir) or owner not in (None, cluster):
        others = f" (those in it are of cluster {owner})" if owner not in (None, cluster) else ""
        raise PrerequisiteError(
            f"no tables of cluster {cluster} in {warehouse_dir}{others}: run 'controlplane pipeline run'"
        )


def has_tables(warehouse_dir: Path) -> bool:
    """Whether a pipeline has created tables in this folder."""
    return any((warehouse_dir / table.name / "_delta_log").is_dir() for table in ALL_TABLES)


def newest_seq(session: SparkSession, warehouse_dir: Path) -> int | None:
    """The seq of the newest decision in the tables; None if there is none yet."""
    if not tables.exists(session, warehouse_dir, DECISIONS_TABLE):
        return None
    (row,) = tables.read(session, warehouse_dir, DECISIONS_TABLE).agg(F.max("seq")).collect()
    return None if row[0] is None else int(row[0])


def run_sql(session: SparkSession, warehouse_dir: Path, statement: str) -> QueryResult:
    """Run one statement on the tables of a pipeline.

    Args:
        session: a session that reads Delta.
        warehouse_dir: the folder of the tables.
        statement: Spark SQL; the tables are known by their names, such as ``broker_load``.

    Raises:
        PrerequisiteError: the folder holds none of the tables.
        UserError: the statement is invalid; the message says where.
    """
    found = [table for table in _named(statement) if tables.exists(session, warehouse_dir, table)]
    if not found:
        raise _without_tables(warehouse_dir)
    for table in found:
        tables.read(session, warehouse_dir, table).createOrReplaceTempView(table.name)
    try:
        result = session.sql(statement)
        rows = tuple(tuple(_plain(value) for value in row) for row in result.collect())
    except PySparkException as error:
        names = ", ".join(table.name for table in found)
        message = f"the statement failed: {error.getMessage() or error} (tables: {names})"
        raise UserError(message) from error
    return QueryResult(tuple(result.columns), rows)


def _without_tables(warehouse_dir: Path) -> PrerequisiteError:
    return PrerequisiteError(
        f"there are no tables in {warehouse_dir}: has the pipeline of this cluster ever run, "
        "and did it run with this folder?"
    )


def _named(statement: str) -> tuple[TableContract, ...]:
    """The tables that a statement names, because opening one takes a second; all if it names none (``show tables``)."""
    named = tuple(table for table in ALL_TABLES if re.search(rf"\b{table.name}\b", statement, re.IGNORECASE))
    return named or ALL_TABLES


def _plain(value: object) -> CanonicalValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Row):
        return {name: _plain(value[name]) for name in value.__fields__}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return str(value)

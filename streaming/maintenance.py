"""Maintenance of the tables: joining small files, and removing files that no query reads any more."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from streaming import tables
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.table import TableContract

_log = structlog.get_logger(__name__)

COMPACTED_DAYS = 1
"""How many days back files are joined. The files of earlier days were joined before."""


def maintain(session: SparkSession, warehouse_dir: Path, now: datetime | None = None) -> None:
    """Join the small files of the last two days and remove those that were replaced long enough ago.

    Tables that the driver writes by itself are kept up by their writers.

    Tables that are replaced are not compacted, because each batch writes their files again, and a concurrent
    compaction would make one of the two fail. How long replaced files are kept, for running queries, is a property of
    the table.
    """
    today = (now or datetime.now(UTC)).date()
    for table in ALL_TABLES:
        if table.by_driver or not tables.exists(session, warehouse_dir, table):
            continue
        delta = DeltaTable.forPath(session, tables.table_path(warehouse_dir, table))
        if table.is_history:
            since = today - timedelta(days=COMPACTED_DAYS)
            delta.optimize().where(f"day >= DATE'{since.isoformat()}'").executeCompaction()
        delta.vacuum()
        _log.info("table maintained", table=table.name, files=_file_count(session, warehouse_dir, table))


def _file_count(session: SparkSession, warehouse_dir: Path, table: TableContract) -> int:
    return len(tables.read(session, warehouse_dir, table).inputFiles())

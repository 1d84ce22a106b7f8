"""Maintenance of the tables: joining small files, and removing files that no query reads any more."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Final

import structlog
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath
from streaming.tables.day_files import start_of_day_ms

_KEPT_FROM_MS: Final = "controlplane.kept_from_ms"
"""The application transaction whose number is the beginning of the first day that was kept when days were forgotten."""

_log = structlog.get_logger(__name__)

_COMPACTED_DAYS: Final = 1
"""How many days back files are joined. The files of earlier days were joined before."""


def maintain(
    tables_dir: StoragePath,
    now: datetime | None = None,
    keep_days: Mapping[str, int] = MappingProxyType({}),
    is_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Forget days that are not to be kept, join the small files of the last two days, and remove what no query reads.

    Tables that are replaced are not compacted, because each batch writes their files again. How long replaced files are
    kept, for running queries, is a property of the table. What fails is told, and stops nothing.

    Args:
        tables_dir: the folder of the tables.
        now: the time; the clock's by default.
        keep_days: how many days of a table of history are kept, with today, by its name; all of other tables are.
        is_ended: asked before each table; true: it and those behind it are left to the next turn.
    """
    today = (now or datetime.now(UTC)).date()
    since = (today - timedelta(days=_COMPACTED_DAYS)).isoformat()
    for table in ALL_TABLES:
        if is_ended():
            return
        kept = keep_days.get(table.name)
        first_day = None if kept is None else today - timedelta(days=kept - 1)
        try:
            files = _maintain_table(tables_dir, table, since, first_day)
        except TableNotFoundError:
            continue
        except Exception as error:  # noqa: BLE001 - delta-rs raises errors of many kinds
            # The table is complete without it, and the next turn does what this one left.
            _log.warning("maintenance failed and is tried again later", table=table.name, error=str(error))
        else:
            _log.info("table maintained", table=table.name, files=files)


def kept_from_ms(tables_dir: StoragePath, table: TableContract) -> int:
    """The time before which rows of a table were forgotten, in milliseconds since 1970; 0: none were."""
    return DeltaTable(str(tables_dir / table.name)).transaction_version(_KEPT_FROM_MS) or 0


def _maintain_table(tables_dir: StoragePath, table: TableContract, since: str, first_day: date | None) -> int:
    """How many files the table has then."""
    there = DeltaTable(str(tables_dir / table.name))
    if first_day is not None:
        # What was forgotten once stays so if more days are to be kept later.
        kept_from = max(start_of_day_ms(first_day), there.transaction_version(_KEPT_FROM_MS) or 0)
        told = CommitProperties(app_transactions=[Transaction(_KEPT_FROM_MS, kept_from)])
        there.delete(f"day < '{first_day}'", commit_properties=told)
    if table.is_history:
        there.optimize.compact(partition_filters=[("day", ">=", since)])
    # Also files that no commit names: those of tasks that were repeated, and of batches that crashed.
    there.vacuum(dry_run=False, full=True)
    return len(there.file_uris())

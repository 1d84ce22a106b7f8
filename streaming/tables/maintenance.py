"""Maintenance of the tables: joining small files, and removing files that no query reads any more."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

import structlog
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError

from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.days import start_of_day_ms
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath

_KEPT_FROM_MS: Final = "controlplane.kept_from_ms"
"""The application transaction whose number is the beginning of the first day that was kept when days were forgotten."""

_DATED_FILE: Final = "_dated"
"""A file beside the tables that each turn touches, to see which time the storage gives it."""
_ALLOWANCE_S: Final = 600.0
"""How long before now new files may be dated; the shortest time for which removed files are kept is an hour."""

_log = structlog.get_logger(__name__)


def maintain(
    tables_dir: StoragePath,
    now: datetime | None = None,
    keep_days: Mapping[str, int] = MappingProxyType({}),
    is_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Forget days that are not to be kept, join the small files of each day, and remove what no query reads.

    Files of every day are joined, not only of the newest: a table that is filled from the beginning of Kafka's log gets
    rows of all days. A day whose files cannot be joined further costs a look at their names in the log. Tables that are
    replaced are not compacted, because each batch writes their files again. How long replaced files are kept, for
    running queries, is a property of the table. What fails is told, and stops nothing.

    Args:
        tables_dir: the folder of the tables.
        now: the time; the clock's by default.
        keep_days: how many days of a table of history are kept, with today, by its name; all of other tables are.
        is_ended: asked before each table; true: it and those behind it are left to the next turn.
    """
    now = now or datetime.now(UTC)
    today = now.date()
    behind_s = _behind_s(tables_dir, now)
    if behind_s > _ALLOWANCE_S:
        text = (
            "the storage dates new files before now: no file is removed, or one might be that is about to be committed"
        )
        _log.warning(text, tables=str(tables_dir), behind_s=round(behind_s))
    for table in ALL_TABLES:
        if is_ended():
            return
        kept = keep_days.get(table.name)
        first_day = None if kept is None else today - timedelta(days=kept - 1)
        try:
            files = _maintain_table(tables_dir, table, first_day, removes=behind_s <= _ALLOWANCE_S)
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


def _behind_s(tables_dir: StoragePath, now: datetime) -> float:
    """How long before now a file is dated that is written now.

    By that date files are removed which no commit names, and executors write files before the driver commits them. In a
    shared folder the date is from a server's clock. An object store refuses requests whose clock differs by more.
    """
    if not isinstance(tables_dir, Path):
        return 0.0
    probe = tables_dir / _DATED_FILE
    try:
        probe.touch()
        return now.timestamp() - probe.stat().st_mtime
    except OSError as error:
        _log.warning("how the storage dates files is not known", tables=str(tables_dir), error=str(error))
        return 0.0


def _maintain_table(tables_dir: StoragePath, table: TableContract, first_day: date | None, *, removes: bool) -> int:
    """How many files the table has then."""
    there = DeltaTable(str(tables_dir / table.name))
    if first_day is not None:
        # What was forgotten once stays so if more days are to be kept later.
        kept_from = max(start_of_day_ms(first_day), there.transaction_version(_KEPT_FROM_MS) or 0)
        told = CommitProperties(app_transactions=[Transaction(_KEPT_FROM_MS, kept_from)])
        there.delete(f"day < '{first_day}'", commit_properties=told)
    if table.is_history:
        there.optimize.compact()
    if removes:
        # Also files that no commit names: those of tasks that were repeated, and of batches that crashed.
        there.vacuum(dry_run=False, full=True)
    return len(there.file_uris())

"""A table as the driver reads it, by delta-rs: its rows, its files, and what stands in its commits."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.contracts.table import BUCKET_COLUMN, TableContract
from streaming.storage import StoragePath
from streaming.tables.app_transactions import app_transactions
from streaming.tables.created_tables import stored_bucket_count

MENDED: Final = "controlplane.mended"
"""Stands in a commit that takes a table back, and after which its writers go on where it is then."""
_LATEST_COMMITS: Final = 8
"""Among how many the last one that changed rows is searched: those of maintenance may follow it."""
_ASKED_EACH: Final = 8
"""Up to so many names are asked of delta-rs one by one, which reads the log for each; more are looked up in one go."""


def takes_back(commit: Mapping[str, Any]) -> bool:
    """Whether a commit of another program gives a table an older version, as Delta's RESTORE does."""
    return commit.get("operation") == "RESTORE" and MENDED not in commit


class StoredTable:
    """A table.

    Args:
        tables_dir: the folder of the tables.
        contract: the table's.
    """

    def __init__(self, tables_dir: StoragePath, contract: TableContract) -> None:
        """Open it as it is now."""
        self.contract = contract
        self.folder = tables_dir / contract.name
        self._table = DeltaTable(str(self.folder))
        self._tables_dir = tables_dir
        self._positions: dict[str, int | None] = {}

    @property
    def was_taken_back(self) -> bool:
        """Whether another program has given it an older version, as Delta's RESTORE does, since it was last written.

        That leaves what was written under names as it was: ``written_version`` is that of rows that are gone.
        """
        latest = self._table.history(_LATEST_COMMITS)
        changes = (takes_back(commit) for commit in latest if takes_back(commit) or commit.get("operation") == "WRITE")
        return next(changes, False)

    @property
    def is_empty(self) -> bool:
        """Whether it has no rows, as far as it was looked at."""
        return not self._table.file_uris()

    @property
    def bucket_count(self) -> int:
        """Into how many buckets it is divided."""
        return stored_bucket_count(self._tables_dir, self.contract)

    def rows(self, filtered: pc.Expression | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The present rows, those that pass the filter."""
        self._table.update_incremental()
        return self._table.to_pyarrow_dataset().to_table(
            columns=None if columns is None else list(columns), filter=filtered
        )

    def files_of_buckets(self) -> Mapping[int, Sequence[str]]:
        """The files of each bucket that has any, by their places below the table's folder."""
        actions = pa.table(self._table.get_add_actions(flatten=True))
        files: dict[int, list[str]] = {}
        for path, bucket in zip(
            actions["path"].to_pylist(), actions[f"partition.{BUCKET_COLUMN}"].to_pylist(), strict=True
        ):
            files.setdefault(bucket, []).append(path)
        return files

    def position(self, name: str) -> int | None:
        """The number that was last written under a name, as it was seen first, or written since; None: none was."""
        if name not in self._positions:
            self._positions.update(self._stored([name]))
        return self._positions[name]

    def positions(self, names: Iterable[str]) -> Mapping[str, int]:
        """Those of :meth:`position` that were written, of many names."""
        asked = list(names)
        self._positions.update(self._stored([name for name in asked if name not in self._positions]))
        found = ((name, self._positions[name]) for name in asked)
        return {name: number for name, number in found if number is not None}

    def _stored(self, names: Sequence[str]) -> Mapping[str, int | None]:
        """What stands in the table's log, up to the version that is open."""
        written = app_transactions(self.folder, self._table.version()) if len(names) > _ASKED_EACH else None
        find = self._table.transaction_version if written is None else written.get
        return {name: find(name) for name in names}

    def files(self, facts: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """The present files.

        Args:
            facts: what is asked of each, such as ``path``, ``partition.day`` or ``min.offset``; what no file of the
                table has is left out.
        """
        self._table.update_incremental()
        actions = pa.table(self._table.get_add_actions(flatten=True))
        found: Sequence[Mapping[str, Any]] = actions.select(
            [each for each in facts if each in actions.schema.names]
        ).to_pylist()
        return found

"""The tables as the driver commits them, by delta-rs: that takes milliseconds, where a write of Spark takes seconds.

Rows are few and in the driver, or in files that executors have written (:mod:`streaming.tables.table_files`). Spark
writes no table, also not for its maintenance: on an object store it would not see the commits of others.
"""

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from controlplane.errors import FencedError, InvariantViolationError, LogContinuityError
from streaming.contracts.table import BUCKET_COLUMN, TableContract
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import StoragePath
from streaming.tables.app_transactions import app_transactions
from streaming.tables.created_tables import stored_bucket_count
from streaming.tables.table_files import WrittenFile

LAST_WRITER: Final = "controlplane.writer"
"""The application transaction whose number is the hash of the name of the writer that committed last."""
MENDED: Final = "controlplane.mended"
"""Stands in a commit that takes a table back, and after which its writers go on where it is then."""
_LATEST_COMMITS: Final = 8
"""Among how many the last one that changed rows is searched: those of maintenance may follow it."""
_ASKED_EACH: Final = 8
"""Up to so many names are asked of delta-rs one by one, which reads the log for each; more are looked up in one go."""


class DriverTable:
    """A table. What is written has a version of the writer's own, which is in the same commit.

    Args:
        tables_dir: the folder of the tables.
        contract: the table's.
        app_id: the writer's name; versions are counted for each name. A name has one writer at a time.
    """

    def __init__(self, tables_dir: StoragePath, contract: TableContract, app_id: str) -> None:
        """Open it as it is now."""
        self.contract = contract
        self.folder = tables_dir / contract.name
        self._table = DeltaTable(str(self.folder))
        self._tables_dir = tables_dir
        self._app_id = app_id
        self._schema = pa.schema(self._table.schema().to_arrow())
        self._writer = zlib.crc32(app_id.encode())
        self._positions: dict[str, int | None] = {}
        self._seen_version = self._table.version()
        self.position(app_id)
        self.position(LAST_WRITER)

    def has(self, version: int) -> bool:
        """Whether the writer's version is written, or a later one."""
        return self.written_version is not None and self.written_version >= version

    @property
    def written_version(self) -> int | None:
        """The writer's version with which it was last written, as far as this writer knows; None: it never was."""
        return self.position(self._app_id)

    @property
    def was_written_by_another(self) -> bool:
        """Whether the last commit of a writer, as far as this one knows, has another name than its own."""
        return self.position(LAST_WRITER) not in (None, self._writer)

    @property
    def was_taken_back(self) -> bool:
        """Whether another program has given it an older version, as Delta's RESTORE does, since it was last written.

        That leaves what was written under names as it was: ``written_version`` is that of rows that are gone.
        """
        latest = (commit for commit in self._table.history(_LATEST_COMMITS) if MENDED not in commit)
        changes = (commit["operation"] for commit in latest if commit.get("operation") in ("WRITE", "RESTORE"))
        return next(changes, None) == "RESTORE"

    @property
    def is_empty(self) -> bool:
        """Whether it has no rows, as this writer knows it."""
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
        """The number that was last written under a name, as this writer saw it first or wrote it; None: none was."""
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

    def append(self, rows: Iterable[Mapping[str, Any]], version: int) -> None:
        """Add rows."""
        self._write(self._arrow(rows), version, mode="append")

    def replace(self, rows: Iterable[Mapping[str, Any]], version: int) -> None:
        """Replace all rows."""
        self._write(self._arrow(rows), version, mode="overwrite")

    def replace_in_buckets(
        self, key: str, present: Mapping[Any, Mapping[str, Any] | None], buckets: Iterable[int], version: int
    ) -> None:
        """Replace the rows of some keys, in one commit that writes the buckets of these keys anew.

        Args:
            key: the column of the keys.
            present: the row of each key; None removes it.
            buckets: the buckets of these keys.
            version: the writer's.
        """
        numbers = sorted(set(buckets))
        if not numbers:
            self.append((), version)
            return
        stored = self.rows(pc.field(BUCKET_COLUMN).isin(numbers))
        keys = pa.array(list(present), type=stored.schema.field(key).type)
        others = stored.filter(pc.invert(pc.is_in(stored[key], keys)))
        rows = pa.concat_tables([others, self._arrow(row for row in present.values() if row is not None)])
        predicate = f"{BUCKET_COLUMN} IN ({', '.join(map(str, numbers))})"
        self._write(rows, version, mode="overwrite", predicate=predicate)

    def append_files(self, files: Sequence[WrittenFile], version: int) -> None:
        """Add the rows of files that executors wrote, which may be none: the version is written in any case."""
        self._commit(files, {self._app_id: version}, mode="append")

    def append_files_at(self, files: Sequence[WrittenFile], positions: Mapping[str, int]) -> None:
        """Add the rows of files, which may be none, and write how far the writer is, in one commit.

        Args:
            files: what executors wrote.
            positions: numbers by their names, each of which is an application transaction of Delta.
        """
        self._commit(files, positions, mode="append")

    def replace_buckets(self, files: Sequence[WrittenFile], version: int, positions: Mapping[str, int]) -> None:
        """Replace all rows of the buckets of which executors wrote files, by those of the files.

        Args:
            files: what executors wrote, which may be none: the version is written in any case.
            version: the writer's.
            positions: further numbers by their names, of which the table was asked before.
        """
        written = {self._app_id: version, **positions}
        if not files:
            self._commit((), written, mode="append")
            return
        filters = [(BUCKET_COLUMN, "in", sorted({file.partition for file in files}))]
        self._commit(files, written, mode="overwrite", partition_filters=filters)

    def _arrow(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        made = [dict(row) for row in rows]
        strange = {name for row in made for name in row} - set(self._schema.names)
        if strange:
            raise InvariantViolationError(f"{self.contract.name} has no column {', '.join(sorted(strange))}")
        return pa.Table.from_pylist(made, schema=self._schema)

    def _write(self, rows: pa.Table, version: int, **how: Any) -> None:  # noqa: ANN401 - passed on
        with self._committing({self._app_id: version}) as properties:
            write_deltalake(self._table, rows, commit_properties=properties, **how)

    def _commit(self, files: Sequence[WrittenFile], positions: Mapping[str, int], **how: Any) -> None:  # noqa: ANN401 - passed on
        (column,) = self.contract.partitioned_by
        now_ms = time.time_ns() // 1_000_000
        added: list[AddAction | RemoveAction] = [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values={column: file.partition},
                modification_time=now_ms,
                data_change=True,
                stats=file.statistics,
            )
            for file in files
        ]
        with self._committing(positions) as properties:
            self._table.create_write_transaction(
                added, schema=self._table.schema(), partition_by=[column], commit_properties=properties, **how
            )

    @contextmanager
    def _committing(self, written: Mapping[str, int]) -> Iterator[CommitProperties]:
        """One commit, unless another process has written since this writer looked, under its name or another one.

        A process that does so between this look and the commit is found by Delta: it refuses the second transaction of
        a name upon the same version.
        """
        positions = {**written, LAST_WRITER: self._writer}
        self._table.update_incremental()  # maintenance commits, too, and removes what only an older version needs
        self._refuse_taken_back()
        for name, stored in self._stored(list(positions)).items():
            known = self._positions.get(name)
            if stored != known:
                raise FencedError(
                    f"the table {self.folder} was written by another process: it is at {stored} of {name}, and this "
                    f"process has left it at {known}"
                )
        yield CommitProperties(app_transactions=[Transaction(name, number) for name, number in positions.items()])
        self._table.update_incremental()
        self._positions.update(positions)
        self._seen_version += self._table.version() == self._seen_version + 1

    def _refuse_taken_back(self) -> None:
        """Refuse to go on behind a RESTORE by another program, which leaves every position as it was."""
        further = self._table.version() - self._seen_version
        if further > 0 and any(map(_takes_back, self._table.history(further))):
            raise LogContinuityError(
                f"the table {self.folder} was given an older version while the pipeline ran: rows that were written "
                f"are gone; {HOW_TO_MEND}"
            )
        self._seen_version += further


def _takes_back(commit: Mapping[str, Any]) -> bool:
    """Whether a commit of another program gives a table an older version, as Delta's RESTORE does."""
    return commit.get("operation") == "RESTORE" and MENDED not in commit

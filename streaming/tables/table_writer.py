"""Tables as the driver commits them, by delta-rs: that takes milliseconds, where a write of Spark takes seconds.

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
from deltalake import CommitProperties, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from controlplane.errors import FencedError, InvariantViolationError, LogContinuityError
from streaming.contracts.table import BUCKET_COLUMN, TableContract
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import StoragePath
from streaming.tables.stored_table import StoredTable, takes_back
from streaming.tables.table_files import WrittenFile

LAST_WRITER: Final = "controlplane.writer"
"""The application transaction whose number is the hash of the name of the writer that committed last."""


class TableWriter(StoredTable):
    """A table and one of its writers. What is written has a version of the writer's own, which is in the same commit.

    Args:
        tables_dir: the folder of the tables.
        contract: the table's.
        app_id: the writer's name; versions are counted for each name. A name has one writer at a time.
    """

    def __init__(self, tables_dir: StoragePath, contract: TableContract, app_id: str) -> None:
        """Open it as it is now."""
        super().__init__(tables_dir, contract)
        self._seen_version = self._table.version()
        self._app_id = app_id
        self._schema = pa.schema(self._table.schema().to_arrow())
        self._writer = zlib.crc32(app_id.encode())
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

    def append(self, rows: Iterable[Mapping[str, Any]], version: int) -> None:
        """Add rows."""
        self._write(self._arrow(rows), version, mode="append")

    def replace(self, rows: Iterable[Mapping[str, Any]], version: int) -> None:
        """Replace all rows."""
        self._write(self._arrow(rows), version, mode="overwrite")

    def merge_rows(
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

    def replace_bucket_files(self, files: Sequence[WrittenFile], version: int, positions: Mapping[str, int]) -> None:
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
                    f"process has left it at {known}; {HOW_TO_MEND}"
                )
        yield CommitProperties(app_transactions=[Transaction(name, number) for name, number in positions.items()])
        self._table.update_incremental()
        self._positions.update(positions)
        self._seen_version += self._table.version() == self._seen_version + 1

    def _refuse_taken_back(self) -> None:
        """Refuse to go on behind a RESTORE by another program, which leaves every position as it was."""
        further = self._table.version() - self._seen_version
        if further > 0 and any(map(takes_back, self._table.history(further))):
            raise LogContinuityError(
                f"the table {self.folder} was given an older version while the pipeline ran: rows that were written "
                f"are gone; {HOW_TO_MEND}"
            )
        self._seen_version += further

"""Tables that the driver writes by itself, by delta-rs: a commit takes milliseconds, where one of Spark takes seconds.

They are those whose rows one process makes anyway: what one leader decided, and one row for each node. Such a table has
no other writer, also for its upkeep: Spark and delta-rs do not see each other's commits in flight on an object store.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from streaming.contracts.table import BUCKET_COLUMN, TableContract
from streaming.created_tables import stored_bucket_count


class DriverTable:
    """One such table. What is written has a version of the writer's own, which is in the same commit.

    Args:
        warehouse_dir: the folder of the tables.
        contract: the table's.
        app_id: the writer's name; versions are counted for each name.
    """

    def __init__(self, warehouse_dir: Path, contract: TableContract, app_id: str) -> None:
        """Open it as it is now."""
        self.contract = contract
        self._table = DeltaTable(warehouse_dir / contract.name)
        self._warehouse_dir = warehouse_dir
        self._app_id = app_id
        self._schema = pa.schema(self._table.schema().to_arrow())

    @property
    def written_version(self) -> int | None:
        """The writer's version with which it was last written; None: it never was."""
        return self._table.transaction_version(self._app_id)

    @property
    def bucket_count(self) -> int:
        """Into how many buckets it is divided."""
        return stored_bucket_count(self._warehouse_dir, self.contract)

    def rows(self, filtered: pc.Expression | None = None) -> pa.Table:
        """The rows as they were last written here, those that pass the filter."""
        return self._table.to_pyarrow_dataset().to_table(filter=filtered)

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
        stored = self.rows(pc.field(BUCKET_COLUMN).isin(numbers))
        keys = pa.array(list(present), type=stored.schema.field(key).type)
        others = stored.filter(pc.invert(pc.is_in(stored[key], keys)))
        rows = pa.concat_tables([others, self._arrow(row for row in present.values() if row is not None)])
        predicate = f"{BUCKET_COLUMN} IN ({', '.join(map(str, numbers))})"
        self._write(rows, version, mode="overwrite", predicate=predicate)

    def maintain(self, compacted: list[tuple[str, str, str]] | None = None) -> int:
        """Join small files of partitions that pass the filter, and remove those that are no longer kept.

        Returns:
            The number of files of the newest version.
        """
        self._table.update_incremental()
        if compacted is not None:
            self._table.optimize.compact(partition_filters=compacted)
        self._table.vacuum(dry_run=False)
        return len(self._table.file_uris())

    def _arrow(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self._schema)

    def _write(self, rows: pa.Table, version: int, **how: Any) -> None:  # noqa: ANN401 - passed on
        written = CommitProperties(app_transactions=[Transaction(self._app_id, version)])
        write_deltalake(self._table, rows, commit_properties=written, **how)
        self._table.update_incremental()

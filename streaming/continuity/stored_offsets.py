"""Which offsets of a topic a table holds, read piece by piece: memory is bounded by the span that is asked for."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from streaming.contracts.records import TICKS_TABLE
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath


class StoredOffsets:
    """The offsets in some columns of a table, as it is now.

    Args:
        tables_dir: the folder of the tables.
        contract: the table.
        columns: those of topic, partition and offset.
        version: of the table; None: the newest.
    """

    def __init__(
        self,
        tables_dir: StoragePath,
        contract: TableContract,
        columns: tuple[str, str, str] = ("topic", "partition", "offset"),
        version: int | None = None,
    ) -> None:
        """Open it."""
        self._dataset = DeltaTable(str(tables_dir / contract.name), version=version).to_pyarrow_dataset()
        self._topic, self._partition, self._offset = columns

    def extents(self, topic: str) -> dict[int, range]:
        """Of each partition that has rows the offsets from the first row to the last."""
        found: dict[int, range] = {}
        for rows in self._read(pc.field(self._topic) == topic, [self._partition, self._offset]):
            grouped = pa.Table.from_batches([rows]).group_by(self._partition)
            extents = grouped.aggregate([(self._offset, "min"), (self._offset, "max")]).to_pydict()
            for partition, first, last in zip(
                extents[self._partition], extents[f"{self._offset}_min"], extents[f"{self._offset}_max"], strict=True
            ):
                before = found.get(partition, range(first, last + 1))
                found[partition] = range(min(first, before.start), max(last + 1, before.stop))
        return found

    def within(self, topic: str, partition: int, span: range) -> npt.NDArray[np.int64]:
        """The offsets of a partition's rows in a span, sorted, as often as they are there."""
        there = (
            (pc.field(self._topic) == topic)
            & (pc.field(self._partition) == partition)
            & (pc.field(self._offset) >= span.start)
            & (pc.field(self._offset) < span.stop)
        )
        parts = [rows.column(0).to_numpy(zero_copy_only=False) for rows in self._read(there, [self._offset])]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def _read(self, filtered: pc.Expression | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for rows in self._dataset.scanner(columns=list(columns), filter=filtered).to_batches():
            if rows.num_rows:
                yield rows


class StoredTickOffsets(StoredOffsets):
    """The offsets of ticks, which stand in lists.

    Args:
        tables_dir: the folder of the tables.
        version: of the table; None: the newest.
    """

    def __init__(self, tables_dir: StoragePath, version: int | None = None) -> None:
        """Open it."""
        super().__init__(tables_dir, TICKS_TABLE, version=version)

    def extents(self, _topic: str) -> dict[int, range]:
        """See :meth:`StoredOffsets.extents`; all ticks are of one topic."""
        rows = self._read(None, ["partition", "first_offset", "last_offset"])
        spans = (zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in rows)
        return joined_extents({partition: range(first, last + 1)} for each in spans for partition, first, last in each)

    def within(self, _topic: str, partition: int, span: range) -> npt.NDArray[np.int64]:
        """See :meth:`StoredOffsets.within`."""
        there = (
            (pc.field("partition") == partition)
            & (pc.field("last_offset") >= span.start)
            & (pc.field("first_offset") < span.stop)
        )
        parts = [rows.column(0).flatten().to_numpy(zero_copy_only=False) for rows in self._read(there, ["offsets"])]
        offsets = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
        return offsets[(offsets >= span.start) & (offsets < span.stop)]


def stored_offsets(tables_dir: StoragePath, contract: TableContract, version: int | None = None) -> StoredOffsets:
    """The offsets of records in one of the tables of a topic, as it is now or was at a version."""
    if contract is TICKS_TABLE:
        return StoredTickOffsets(tables_dir, version)
    return StoredOffsets(tables_dir, contract, version=version)


def joined_extents(extents: Iterable[dict[int, range]]) -> dict[int, range]:
    """Of each partition the offsets from the first to the last of several tables."""
    joined: dict[int, range] = {}
    for each in extents:
        for partition, offsets in each.items():
            before = joined.get(partition, offsets)
            joined[partition] = range(min(before.start, offsets.start), max(before.stop, offsets.stop))
    return joined

"""An executor puts decisions together and writes their rows into files."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.values.identifiers import Seq
from streaming.contracts.records import DECISIONS_TABLE
from streaming.records.decision_rows import decision_rows
from streaming.records.decode import RawRow
from streaming.records.record_rows import table_of
from streaming.storage import StoragePath
from streaming.tables.day_files import TASK_RESULT_TYPE, BatchFiles, DayFiles, batch_files, task_result

_ROWS_AT_ONCE: Final = 256
"""How many rows are held before they are written: what bounds the memory, beside the greatest decision."""


def write_decision_files(
    records: DataFrame, log_id: str, begin_offset: int, folder: StoragePath, next_seq: Seq | None
) -> BatchFiles:
    """Write the decisions that are whole in these records, in order; foreign records are passed over.

    Args:
        records: as :func:`streaming.sources.read_stream` returns them.
        log_id: the log that is read.
        begin_offset: the offset from which foreign records count.
        folder: of the table ``decisions``.
        next_seq: the decision that has to come first; None if the table is empty.
    """
    write = partial(_write, log_id=log_id, begin_offset=begin_offset, folder=folder, next_seq=next_seq)
    in_order = records.select(*RawRow._fields).coalesce(1).sortWithinPartitions("offset")
    return batch_files(in_order.mapInArrow(write, TASK_RESULT_TYPE))


def _write(
    batches: Iterable[pa.RecordBatch], log_id: str, begin_offset: int, folder: StoragePath, next_seq: Seq | None
) -> Iterator[pa.RecordBatch]:
    foreign: list[int] = []

    def count(record: RawRow) -> None:
        if record.offset >= begin_offset:  # those before were counted with the batch before
            foreign.append(record.offset)

    files = DayFiles(folder, DECISIONS_TABLE)
    schema = to_arrow_schema(DECISIONS_TABLE.schema)
    rows = decision_rows(_records(batches), log_id, count, next_seq)
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        files.write(table_of(some, schema))
    yield task_result({DECISIONS_TABLE.name: files.close()}, len(foreign))


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[RawRow]:
    for batch in batches:
        yield from map(RawRow._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))

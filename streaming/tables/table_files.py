"""Files of tables that executors write and read in Python, batch by batch of Arrow; the driver commits what they wrote.

A file that is not committed belongs to no version of its table: that of a task which is repeated, say, or of a batch
that crashed. Maintenance removes it.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streaming.contracts.table import INDEXED_COLUMN_COUNT
from streaming.storage import ObjectPath, StoragePath
from streaming.tables.file_statistics import FileStatistics

_READ_BUFFER_BYTES: Final = 1_048_576
"""How much of a column is read at once: otherwise it is the column of a whole row group."""


class WrittenFile(NamedTuple):
    """A file that is to be committed.

    Attributes:
        path: its place below the table's folder.
        partition: the value of the column by which the table is divided, as Delta writes it.
        size_bytes: its size.
        statistics: of its rows, in Delta's form; see :class:`streaming.tables.file_statistics.FileStatistics`.
    """

    path: str
    partition: str
    size_bytes: int
    statistics: str


WRITTEN_TYPE: Final = StructType(
    [
        StructField("path", StringType()),
        StructField("partition", StringType()),
        StructField("size_bytes", LongType()),
        StructField("statistics", StringType()),
    ]
)
"""The columns in which executors tell of written files."""


class TableFileWriter:
    """Writes one file of a table that is divided by one column.

    Args:
        folder: the table's.
        column: the column by which it is divided, which is not in its files.
        partition: its value in this file.
        schema: the table's columns.
    """

    def __init__(self, folder: StoragePath, column: str, partition: str, schema: pa.Schema) -> None:
        """Open the file."""
        self._partition = partition
        self._path = f"{column}={partition}/part-{uuid.uuid4()}.parquet"
        self._schema = schema.remove(schema.get_field_index(column))
        indexed = list(schema)[:INDEXED_COLUMN_COUNT]
        self._statistics = FileStatistics(field for field in indexed if field.name != column)
        self._stream = _output(folder / self._path)
        self._writer = pq.ParquetWriter(self._stream, self._schema, compression="snappy")

    def write(self, rows: pa.Table) -> None:
        """Add rows; columns that the file does not have are left out."""
        written = rows.select(self._schema.names).cast(self._schema)
        self._statistics.add(written)
        self._writer.write_table(written)

    def close(self) -> WrittenFile:
        """End the file."""
        self._writer.close()
        size_bytes = self._stream.tell()
        self._stream.close()
        return WrittenFile(self._path, self._partition, size_bytes, self._statistics.as_json())


def read_files(
    folder: StoragePath, paths: Sequence[str], column: str, partition: pa.Scalar, schema: pa.Schema
) -> pa.Table:
    """The rows of files of one partition, with the column by which the table is divided.

    Args:
        folder: the table's.
        paths: their places below it.
        column: the column by which it is divided.
        partition: its value in these files.
        schema: the columns to read; one that a file does not have is null in its rows.
    """
    inside = schema.remove(schema.get_field_index(column))
    tables = [_read(folder / path, inside.names) for path in paths]
    rows = pa.concat_tables([_with_schema(table, inside) for table in tables]) if tables else inside.empty_table()
    divided = pa.repeat(partition, rows.num_rows)
    return rows.append_column(schema.field(column), divided).select(schema.names)


def _output(path: StoragePath) -> pa.NativeFile:
    if isinstance(path, ObjectPath):
        return path.open_output()
    path.parent.mkdir(parents=True, exist_ok=True)
    return pa.OSFile(str(path), "wb")


def _read(path: StoragePath, names: Sequence[str]) -> pa.Table:
    with _input(path) as source:
        file = pq.ParquetFile(source)
        there = set(file.schema_arrow.names)
        return file.read([name for name in names if name in there])


def _input(path: StoragePath) -> pa.NativeFile:
    return path.open_input() if isinstance(path, ObjectPath) else pa.OSFile(str(path))


def read_in_parts(folder: StoragePath, path: str, names: Collection[str], values_at_once: int) -> Iterator[pa.Table]:
    """The rows of one file with some of their columns, in parts that bound the memory, on one core.

    Args:
        folder: the table's.
        path: the file's place below it.
        names: columns, or fields of a column that is a struct or a list of structs, such as ``bundles.bundle_id``.
        values_at_once: about how many values of a column a part has: a list has as many as it is long.
    """
    with (
        _input(folder / path) as source,
        pq.ParquetFile(source, pre_buffer=False, buffer_size=_READ_BUFFER_BYTES) as file,
    ):
        paths = [file.schema.column(number).path for number in range(len(file.schema))]
        numbers = [number for number, leaf in enumerate(paths) if _field_name(leaf) in names]
        columns = [paths[number] for number in numbers]
        for group in range(file.metadata.num_row_groups):
            row_group = file.metadata.row_group(group)
            value_count = max(row_group.column(number).num_values for number in numbers)
            rows_at_once = max(1, row_group.num_rows * values_at_once // max(1, value_count))
            for batch in file.iter_batches(rows_at_once, row_groups=[group], columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])


def _field_name(leaf_path: str) -> str:
    """``bundles.list.element.bundle_id`` is ``bundles.bundle_id``: writers differ in the names between the two."""
    parts = leaf_path.split(".")
    return parts[0] if len(parts) == 1 else f"{parts[0]}.{parts[-1]}"


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    there = set(rows.schema.names)
    columns: Iterable[pa.ChunkedArray | pa.Array] = (
        rows[field.name].cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in schema
    )
    return pa.table(list(columns), schema=schema)


def written_files(rows: DataFrame) -> list[WrittenFile]:
    """The files that tasks tell of, in rows of :data:`WRITTEN_TYPE`."""
    return [WrittenFile(*row) for row in rows.collect()]


def file_rows(files: Iterable[WrittenFile]) -> pa.RecordBatch:
    """What a task returns: written files as rows of :data:`WRITTEN_TYPE`."""
    columns = list(zip(*files, strict=True)) or [()] * len(WrittenFile._fields)
    types = (pa.string(), pa.string(), pa.int64(), pa.string())
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(WrittenFile._fields))

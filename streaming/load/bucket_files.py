"""The files of ``bundle_load``: one bucket's rows at a time, read and written by executors."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.contracts.table import BUCKET_COLUMN
from streaming.storage import StoragePath
from streaming.tables.table_files import TableFileWriter, file_rows, read_files
from streaming.worker_setup import set_up_worker

BUNDLE_SCHEMA: Final = to_arrow_schema(BUNDLE_LOAD_TABLE.schema)
"""The columns of ``bundle_load``."""


class StoredBuckets(NamedTuple):
    """The buckets of ``bundle_load`` as they are in one version of it.

    Attributes:
        session: has the executors.
        folder: the table's.
        files: of each bucket its files, by their places below the folder.
    """

    session: SparkSession
    folder: StoragePath
    files: Mapping[int, Sequence[str]]

    def map(
        self,
        function: Callable[[pa.Table], Iterator[pa.RecordBatch]],
        schema: StructType | str,
        columns: Sequence[str] = BUNDLE_SCHEMA.names,
    ) -> DataFrame:
        """What a function makes of each bucket's rows, on executors.

        Args:
            function: takes the rows of one bucket.
            schema: that of what it returns.
            columns: those of the rows that it takes, beside ``bucket``; others are not read.
        """
        taken = pa.schema([field for field in BUNDLE_SCHEMA if field.name in (BUCKET_COLUMN, *columns)])
        read = functools.partial(
            _map, function=function, folder=self.folder, of_buckets=tuple(self.files.items()), schema=taken
        )
        # A row is the place of a bucket among them; a frame of their files would be made in Python, which takes longer.
        return self.session.range(len(self.files)).mapInArrow(read, schema)


def _map(
    batches: Iterable[pa.RecordBatch],
    function: Callable[[pa.Table], Iterator[pa.RecordBatch]],
    folder: StoragePath,
    of_buckets: Sequence[tuple[int, Sequence[str]]],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    set_up_worker()
    for batch in batches:
        for place in batch.column(0).to_pylist():
            bucket, paths = of_buckets[place]
            yield from function(read_bucket(folder, paths, pa.scalar(bucket, pa.int32()), schema))


def read_bucket(
    folder: StoragePath, paths: Sequence[str], bucket: pa.Scalar, schema: pa.Schema = BUNDLE_SCHEMA
) -> pa.Table:
    """The rows of one bucket, which these files have.

    Args:
        folder: the table's.
        paths: the bucket's files.
        bucket: its number.
        schema: the columns to read, with ``bucket``.
    """
    return read_files(folder, paths, BUCKET_COLUMN, bucket, schema)


def write_bucket(folder: StoragePath, bucket: pa.Scalar, rows: pa.Table) -> pa.RecordBatch:
    """Write the rows of one bucket into one file, and tell of it."""
    writer = TableFileWriter(folder, BUCKET_COLUMN, str(bucket.as_py()), BUNDLE_SCHEMA)
    writer.write(rows)
    return file_rows([writer.close()])

"""The files of ``bundle_load``: one bucket's rows at a time, read and written by executors."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.contracts.table import BUCKET_COLUMN
from streaming.storage import StoragePath
from streaming.tables.table_files import TableFileWriter, file_rows, read_files

BUNDLE_SCHEMA: Final = to_arrow_schema(BUNDLE_LOAD_TABLE.schema)
"""The columns of ``bundle_load``."""
_BUCKET_FILES: Final = "bucket int, paths array<string>"


def bucket_files(session: SparkSession, files: Mapping[int, Sequence[str]]) -> DataFrame:
    """A row for each bucket, with its files."""
    return session.createDataFrame([(bucket, list(paths)) for bucket, paths in files.items()], _BUCKET_FILES)


def read_buckets(batches: Iterable[pa.RecordBatch], folder: StoragePath) -> Iterator[tuple[pa.Scalar, pa.Table]]:
    """Each bucket and its rows.

    Args:
        batches: rows of :func:`bucket_files`.
        folder: the table's.
    """
    for batch in batches:
        for bucket, paths in zip(batch.column(0), batch.column(1).to_pylist(), strict=True):
            yield bucket, read_bucket(folder, paths, bucket)


def read_bucket(folder: StoragePath, paths: Sequence[str], bucket: pa.Scalar) -> pa.Table:
    """The rows of one bucket, which these files have."""
    return read_files(folder, paths, BUCKET_COLUMN, bucket, BUNDLE_SCHEMA)


def write_bucket(folder: StoragePath, bucket: pa.Scalar, rows: pa.Table) -> pa.RecordBatch:
    """Write the rows of one bucket into one file, and tell of it."""
    writer = TableFileWriter(folder, BUCKET_COLUMN, str(bucket.as_py()), BUNDLE_SCHEMA)
    writer.write(rows)
    return file_rows([writer.close()])

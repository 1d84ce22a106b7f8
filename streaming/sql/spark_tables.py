"""Opening Delta tables by their contracts in Spark, in a folder each."""

from pyspark.sql import DataFrame, SparkSession

from streaming.contracts.table import TableContract
from streaming.storage import StoragePath


def table_path(tables_dir: StoragePath, table: TableContract) -> str:
    """The table's folder."""
    return str(tables_dir / table.name)


def read(session: SparkSession, tables_dir: StoragePath, table: TableContract) -> DataFrame:
    """The table as it is now."""
    return session.read.format("delta").load(table_path(tables_dir, table))

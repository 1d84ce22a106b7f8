"""Decoded records to the rows of the history tables."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from streaming.contracts.table import TableContract
from streaming.tables import day_of


def history_rows(decoded: DataFrame, topic: str, table: TableContract) -> DataFrame:
    """The rows of a history table: the record's coordinates and its columns.

    Args:
        decoded: usable records with the column ``payload``.
        topic: their topic without the cluster's prefix.
        table: the table that holds them.
    """
    return decoded.select(
        F.lit(topic).alias("topic"),
        "partition",
        "offset",
        "append_time_ms",
        day_of("append_time_ms").alias("day"),
        "payload.*",
    ).select(*table.columns)

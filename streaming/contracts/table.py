"""What a contract of a Delta table says; its columns are declared in the modules beside this one.

Tables are created from these contracts, writers select exactly these columns, and ``docs/reference/delta-tables.md`` is
generated from them. A released column is never renamed, removed or given another type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pyspark.sql.types import DateType, IntegerType, LongType, StringType, StructField, StructType

from streaming.contracts.columns import column

INDEXED_COLUMN_COUNT: Final = 6
"""Of how many columns commits hold statistics: the first ones, which are those that queries restrict. The one by which
folders are divided counts among them, and needs none."""
COMMON_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Files stay readable for every Delta reader, also for those that know no deletion vectors.
        "delta.enableDeletionVectors": "false",
        "delta.checkpointInterval": "50",
        "delta.logRetentionDuration": "interval 6 hours",
        "delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMN_COUNT),
    }
)
HISTORY_PROPERTIES: Final = MappingProxyType({"delta.deletedFileRetentionDuration": "interval 6 hours"})
CURRENT_PROPERTIES: Final = MappingProxyType(
    # Each batch replaces the files, and no query reads a file that was replaced an hour ago.
    {"delta.deletedFileRetentionDuration": "interval 1 hours"}
)

DAY_COLUMN: Final = "day"
"""The column by which tables of history are divided."""


@dataclass(frozen=True, slots=True)
class TableContract:
    """One Delta table.

    Attributes:
        name: also its folder's name and its name in SQL.
        row: the meaning of one row, as a sentence.
        written: how rows are written, as a sentence.
        key: the columns that identify a row.
        fields: the columns, in order.
        partitioned_by: the columns by which its folders are divided.
        properties: Delta's, in addition to the common ones.
    """

    name: str
    row: str
    written: str
    key: tuple[str, ...]
    fields: tuple[StructField, ...]
    partitioned_by: tuple[str, ...] = (DAY_COLUMN,)
    properties: Mapping[str, str] = field(default_factory=lambda: HISTORY_PROPERTIES)

    @property
    def schema(self) -> StructType:
        """The columns as a Spark schema."""
        return StructType(list(self.fields))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(each.name for each in self.fields)

    @property
    def is_history(self) -> bool:
        """Whether its rows are divided by day, and go only with their day."""
        return DAY_COLUMN in self.partitioned_by


COORDINATES: Final = (
    column("topic", StringType(), "The topic, without the cluster's prefix."),
    column("partition", IntegerType(), "Its partition."),
    column("offset", LongType(), "The record's offset; with topic and partition it names the record."),
    column("append_time_ms", LongType(), "When the broker appended the record, in milliseconds since 1970."),
    column(
        DAY_COLUMN, DateType(), "The day of `append_time_ms` in UTC; restrict it and other days' files are not read."
    ),
)
BUCKET_COLUMN: Final = "bucket"
"""The column by which tables of present rows are divided."""

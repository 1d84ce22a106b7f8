"""The table of gaps: what Kafka no longer had when a stream was to read it."""

from typing import Final

from pyspark.sql.types import DateType, IntegerType, LongType, StringType

from streaming.contracts.columns import column
from streaming.contracts.table import TableContract

GAPS_TABLE: Final = TableContract(
    name="gaps",
    row="Offsets of a partition that Kafka no longer had, and that no table has.",
    written="Added once, by a start with `--accept-gap`, before the stream goes on behind them. Gaps do not overlap.",
    key=("topic", "partition", "first_offset"),
    fields=(
        column("topic", StringType(), "The topic, without the cluster's prefix."),
        column("partition", IntegerType(), "Its partition."),
        column("first_offset", LongType(), "The first missing offset."),
        column(
            "last_offset",
            LongType(),
            "The last missing offset. Offsets are no count of records: marks of transactions have some, too.",
        ),
        column(
            "read_until_ms",
            LongType(),
            "When the stream planned its last batch before, in milliseconds since 1970: what is missing came later, or "
            "not long before. 0: it had planned none.",
        ),
        column("found_at_ms", LongType(), "When the gap was found and accepted, in milliseconds since 1970."),
        column("day", DateType(), "The day of `found_at_ms` in UTC."),
    ),
    partitioned_by=(),
)

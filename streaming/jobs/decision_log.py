"""The stream of the decision log: whole decisions, one row each."""

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.config import DECISIONS
from streaming.config import PipelineConfig
from streaming.sinks import BatchWriter
from streaming.sources import read_range, read_stream
from streaming.table_contracts import DECISIONS_TABLE
from streaming.transforms.decision_rows import LogRecord, decision_rows, part_number


def start_decisions(session: SparkSession, config: PipelineConfig) -> StreamingQuery:
    """Start the stream of ``decisions`` into its table."""
    records = read_stream(session, config.kafka, config.cluster.topic(DECISIONS), config.max_records_per_batch)
    return (
        records.writeStream.queryName(DECISIONS_TABLE.name)
        .option("checkpointLocation", str(config.checkpoint_dir(DECISIONS_TABLE.name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .foreachBatch(lambda batch, batch_id: write_decisions(batch, batch_id, config))
        .start()
    )


def write_decisions(batch: DataFrame, batch_id: int, config: PipelineConfig) -> None:
    """Add the decisions whose last record is in this batch.

    A batch may end within a decision that was written in parts. The next batch then begins with a later part, and reads
    the parts before it again: they stand right before it, because they are in one transaction.
    """
    first = batch.orderBy("offset").limit(1).collect()
    if not first:
        return
    whole = _with_earlier_parts(batch, _record(first[0]), config)
    in_order = whole.coalesce(1).sortWithinPartitions("offset")
    rows = in_order.rdd.mapPartitions(_rows_of)
    session = batch.sparkSession
    table_rows = session.createDataFrame(rows, DECISIONS_TABLE.schema, verifySchema=False)
    BatchWriter.of(batch, batch_id, config.warehouse_dir).append(table_rows, DECISIONS_TABLE)


def _with_earlier_parts(batch: DataFrame, first: LogRecord, config: PipelineConfig) -> DataFrame:
    part = part_number(first).part
    if part == 0:
        return batch
    offsets = range(first.offset - part, first.offset)
    topic = config.cluster.topic(DECISIONS)
    return read_range(batch.sparkSession, config.kafka, topic, first.partition, offsets).unionByName(batch)


def _record(row: Row) -> LogRecord:
    return LogRecord(row["partition"], row["offset"], row["append_time_ms"], bytes(row["value"]))


def _rows_of(rows: Iterable[Row]) -> Iterator[tuple[object, ...]]:
    return decision_rows(_record(row) for row in rows)

"""The stream of the decision log: whole decisions, one row each; what is none of the log's is passed by."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.config import DECISIONS
from streaming import tables
from streaming.config import PipelineConfig
from streaming.sinks import BatchWriter
from streaming.sources import read_range, read_stream
from streaming.table_contracts import DECISIONS_TABLE
from streaming.transforms.decision_rows import LogRecord, Part, decision_rows, part_of

_FIRST_LOOK: Final = 1
_NEXT_LOOK: Final = 64
"""Records that are looked at for the first one of the log: one at first, because foreign ones are few."""

_log = structlog.get_logger(__name__)


def start_decisions(session: SparkSession, config: PipelineConfig) -> StreamingQuery:
    """Start the stream of ``decisions`` into its table."""
    records = read_stream(session, config.kafka, config.cluster.topic(DECISIONS), config.max_records_per_batch)
    return (
        records.writeStream.queryName(DECISIONS_TABLE.name)
        .option("checkpointLocation", str(config.checkpoint_dir(DECISIONS_TABLE.name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .foreachBatch(DecisionLogWriter(config).write)
        .start()
    )


class DecisionLogWriter:
    """Writes the batches of one stream, and knows which log they are of: that of the first decision in the table."""

    def __init__(self, config: PipelineConfig) -> None:
        """The log is found out with the first batch."""
        self._config = config
        self._log_id = ""

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Add the decisions whose last record is in this batch.

        A batch may end within a decision that was written in parts. The next batch then begins with a later part, and
        reads the parts before it again.
        """
        self._log_id = self._log_id or _log_id_in_table(batch.sparkSession, self._config)
        first = _first_of_log(batch, self._log_id)
        if first is None:
            return
        record, part = first
        self._log_id = part.log_id
        whole = batch.where(batch["offset"] >= record.offset)
        if part.part > 0:
            whole = self._earlier_parts(batch.sparkSession, record, part).unionByName(whole)
        in_order = whole.coalesce(1).sortWithinPartitions("offset")
        rows = in_order.rdd.mapPartitions(partial(_rows_of, log_id=self._log_id))
        table_rows = batch.sparkSession.createDataFrame(rows, DECISIONS_TABLE.schema, verifySchema=False)
        BatchWriter.of(batch, batch_id, self._config.warehouse_dir).append(table_rows, DECISIONS_TABLE)

    def _earlier_parts(self, session: SparkSession, first: LogRecord, part: Part) -> DataFrame:
        """The records from the decision's first part on: right before ``first``, but for foreign ones in between."""
        topic = self._config.cluster.topic(DECISIONS)
        begin = Part(part.log_id, part.seq, 0)
        reach = part.part
        while True:
            start = max(first.offset - reach, 0)
            earlier = read_range(session, self._config.kafka, topic, first.partition, range(start, first.offset))
            found = [
                record.offset for record in map(_record, earlier.collect()) if part_of(record, part.log_id) == begin
            ]
            if found or start == 0:
                return earlier.where(earlier["offset"] >= max(found, default=start))
            reach *= 2


def _log_id_in_table(session: SparkSession, config: PipelineConfig) -> str:
    if not tables.exists(session, config.warehouse_dir, DECISIONS_TABLE):
        return ""
    known = tables.read(session, config.warehouse_dir, DECISIONS_TABLE).select("log_id").limit(1).collect()
    return str(known[0]["log_id"]) if known else ""


def _first_of_log(batch: DataFrame, log_id: str) -> tuple[LogRecord, Part] | None:
    """The first record of the batch that is one of the log's, and which part it is."""
    looked_at = 0
    in_order = batch.orderBy("offset")
    while True:
        rows = in_order.offset(looked_at).limit(_NEXT_LOOK if looked_at else _FIRST_LOOK).collect()
        for record in map(_record, rows):
            part = part_of(record, log_id)
            if part is not None:
                return record, part
        if not rows:
            return None
        if not looked_at:
            _log.warning("batch begins with foreign records", at=f"{DECISIONS}[0]@{rows[0]['offset']}")
        looked_at += len(rows)


def _record(row: Row) -> LogRecord:
    return LogRecord(row["partition"], row["offset"], row["append_time_ms"], _bytes(row["key"]), _bytes(row["value"]))


def _bytes(value: bytearray | None) -> bytes | None:
    """Spark hands binary columns over as bytearrays."""
    return None if value is None else bytes(value)


def _rows_of(rows: Iterable[Row], log_id: str) -> Iterator[tuple[object, ...]]:
    return decision_rows((_record(row) for row in rows), log_id)

"""The stream of the decision log: one row for each whole decision. Foreign records are skipped."""

from typing import Final, NamedTuple

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.config import DECISIONS
from controlplane.core.values.identifiers import Seq
from streaming.config import PipelineConfig
from streaming.contracts.records import DECISIONS_TABLE
from streaming.jobs.topic_streams import start_topic_stream
from streaming.metrics import PipelineMetrics
from streaming.records.decision_files import write_decision_files
from streaming.records.decision_rows import Part, part_of
from streaming.records.decode import RawRow, as_bytes
from streaming.sources import read_range
from streaming.tables.newest_decision import newest_decision
from streaming.tables.table_writer import TableWriter

_FIRST_LOOK: Final = 1
_NEXT_LOOK: Final = 64
"""Numbers of records that are searched for the first one of the log: one at first, because foreign ones are rare."""

_log = structlog.get_logger(__name__)


def start_decisions(session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> StreamingQuery:
    """Start the stream of ``decisions`` into its table."""
    return start_topic_stream(session, config, DECISIONS, DecisionBatchWriter(config, metrics))


class _Expected(NamedTuple):
    """The log id and the seq of the next decision; empty and None before the first decision."""

    log_id: str
    next_seq: Seq | None


class DecisionBatchWriter:
    """Writes the batches of one stream. The next decision is the one after the last decision in the table."""

    def __init__(self, config: PipelineConfig, metrics: PipelineMetrics) -> None:
        """The log id is determined with the first batch.

        Args:
            config: the pipeline's settings.
            metrics: counts foreign records.
        """
        self._config = config
        self._foreign = metrics.passed_over.labels(DECISIONS_TABLE.name)
        self._expected = _Expected("", None)
        self._table: TableWriter | None = None

    def write(self, records: DataFrame, query_id: str, batch_id: int) -> None:
        """Add the decisions whose last record is in this batch, once.

        A batch may end within a decision of several parts. The next batch then begins with a later part, and the
        earlier parts are read again.

        Args:
            records: the batch.
            query_id: that of the streaming query: a batch is known by it and its number.
            batch_id: the number, the same when the batch is repeated after a crash.

        Raises:
            PySparkException: of a LogContinuityError: the batch does not go on where the table ends.
        """
        table = self._table = self._table or TableWriter(self._config.tables_dir, DECISIONS_TABLE, query_id)
        if table.has(batch_id):
            return
        behind = _behind_table(self._config)
        expected = behind or self._expected
        skipped, first = _first_of_log(records, expected)
        self._foreign.inc(skipped)
        if first is None:
            # Where it is missing, the table would be taken for one that is older than its checkpoint.
            table.append_files((), batch_id)
            return
        record, part = first
        self._expected = _Expected(part.log_id, Seq(part.seq))
        whole = records.where(records["offset"] >= record.offset)
        if part.part > 0:
            whole = self._earlier_parts(records.sparkSession, record, part).unionByName(whole)
        next_seq = None if behind is None else behind.next_seq
        written = write_decision_files(whole, part.log_id, record.offset, table.folder, next_seq)
        table.append_files(written.files.get(DECISIONS_TABLE.name, ()), batch_id)
        self._foreign.inc(written.passed_over)

    def _earlier_parts(self, session: SparkSession, first: RawRow, part: Part) -> DataFrame:
        """The records from the decision's first part on. They are right before ``first``, except for foreign ones.

        There are none if Kafka no longer has the first part, or never had it.
        """
        topic = self._config.cluster.topic(DECISIONS)
        begin = Part(part.log_id, part.seq, 0)
        reach = part.part
        while True:
            start = max(first.offset - reach, 0)
            earlier = read_range(session, self._config.kafka, topic, first.partition, range(start, first.offset))
            records = [_record(row) for row in earlier.collect()]
            parts = {record.offset: part_of(record, part.log_id, Seq(part.seq)) for record in records}
            found = [offset for offset, each in parts.items() if each == begin]
            is_behind_another = any(each is not None and each.seq != part.seq for each in parts.values())
            if found or is_behind_another or start == 0:
                return earlier.where(earlier["offset"] >= max(found, default=first.offset))
            reach *= 2


def _behind_table(config: PipelineConfig) -> _Expected | None:
    """What follows the last decision in the table; None if the table is empty."""
    last = newest_decision(config.tables_dir)
    return None if last is None else _Expected(last.log_id, Seq(last.seq + 1))


def _first_of_log(batch: DataFrame, expected: _Expected) -> tuple[int, tuple[RawRow, Part] | None]:
    """The number of foreign records at the start of the batch, and the first record of the log with its part."""
    looked_at = 0
    in_order = batch.orderBy("offset")
    while True:
        rows = in_order.offset(looked_at).limit(_NEXT_LOOK if looked_at else _FIRST_LOOK).collect()
        for number, record in enumerate(map(_record, rows)):
            part = part_of(record, *expected)
            if part is not None:
                return looked_at + number, (record, part)
        if not rows:
            return looked_at, None
        if not looked_at:
            _log.warning("batch begins with foreign records", at=f"{DECISIONS}[0]@{rows[0]['offset']}")
        looked_at += len(rows)


def _record(row: Row) -> RawRow:
    return RawRow(row["partition"], row["offset"], row["append_time_ms"], as_bytes(row["key"]), as_bytes(row["value"]))

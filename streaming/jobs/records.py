"""The streams that only add rows: records of a topic, decoded, into the topic's tables."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.config import PipelineConfig
from streaming.contracts.records import TABLE_OF_TOPIC, tables_of
from streaming.jobs.topic_streams import start_topic_stream
from streaming.metrics import PipelineMetrics
from streaming.records.record_files import write_record_files
from streaming.tables.table_writer import TableWriter


def start_records(
    session: SparkSession, config: PipelineConfig, topic: str, metrics: PipelineMetrics
) -> StreamingQuery:
    """Start the stream of ``heartbeats``, ``membership``, ``intents`` or ``dead-letters`` into its tables."""
    return start_topic_stream(session, config, topic, RecordBatchWriter(config, topic, metrics))


class RecordBatchWriter:
    """One run of a stream.

    Args:
        config: the pipeline's settings.
        topic: without the cluster's prefix.
        metrics: counts unusable records. They are only counted here, because the leader writes their dead letters.
    """

    def __init__(self, config: PipelineConfig, topic: str, metrics: PipelineMetrics) -> None:
        self._config = config
        self._topic = topic
        self._passed_over = metrics.passed_over.labels(TABLE_OF_TOPIC[topic].name)
        self._tables: list[TableWriter] = []

    def write(self, records: DataFrame, query_id: str, batch_id: int) -> None:
        """Add the rows of one batch, once.

        Args:
            records: the batch.
            query_id: that of the streaming query: a batch is known by it and its number.
            batch_id: the number, the same when the batch is repeated after a crash.
        """
        if not self._tables:  # the query has its id with the first batch
            folder = self._config.tables_dir
            self._tables = [TableWriter(folder, contract, query_id) for contract in tables_of(self._topic)]
        left = [table for table in self._tables if not table.has(batch_id)]
        if not left:
            return
        # One file for each batch and core; otherwise it would be one for each of Kafka's partitions.
        in_parts = records.coalesce(self._config.spark.cores)
        folders = {table.contract.name: table.folder for table in self._tables}
        written = write_record_files(in_parts, self._topic, self._config.kafka.schema_ids, folders)
        for table in left:
            table.append_files(written.files.get(table.contract.name, ()), batch_id)
        self._passed_over.inc(written.passed_over)

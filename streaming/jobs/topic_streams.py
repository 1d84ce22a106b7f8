"""How Spark reads a topic: from the checkpoint of the topic's table on, in batches that a writer puts into tables.

The name by which tables know a batch is the streaming query's own id, which is in the checkpoint. If the checkpoint is
deleted, the query gets a new id, so that its new batches are not taken for old ones, and left out in silence.
"""

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.errors import InvariantViolationError
from streaming.config import PipelineConfig
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.sources import read_stream


class BatchWriter(Protocol):
    """Writes the batches of one run of a stream."""

    def write(self, records: DataFrame, query_id: str, batch_id: int) -> None:
        """Write one batch, once also if it is given again after a crash.

        Args:
            records: the batch, with the columns of :func:`streaming.sources.read_stream`.
            query_id: that of the streaming query: a batch is known by it and its number.
            batch_id: the number, the same when the batch is repeated.
        """


def start_topic_stream(
    session: SparkSession, config: PipelineConfig, topic: str, batches: BatchWriter
) -> StreamingQuery:
    """Start to read a topic; the stream has the name of the topic's table.

    Args:
        session: the session.
        config: the pipeline's settings.
        topic: without the cluster's prefix.
        batches: takes what is read.
    """
    name = TABLE_OF_TOPIC[topic].name
    records = read_stream(session, config.kafka, config.cluster.topic(topic), config.max_records_per_batch)
    return (
        records.writeStream.queryName(name)
        .option("checkpointLocation", str(config.checkpoint_dir(name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .foreachBatch(lambda batch, batch_id: batches.write(batch, _query_id(batch), batch_id))
        .start()
    )


def _query_id(batch: DataFrame) -> str:
    """The id of the streaming query that passes a batch to ``foreachBatch``."""
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        message = "Spark does not say which streaming query the batch belongs to: it could not be written once only"
        raise InvariantViolationError(message)
    return found

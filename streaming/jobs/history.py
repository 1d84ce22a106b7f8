"""The streams that only add rows: records of a topic, decoded, into the topic's table."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.config import DEAD_LETTERS
from streaming.config import PipelineConfig
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.decode import decoded, decoded_dead_letters
from streaming.metrics import RECORDS_OBSERVATION
from streaming.sources import read_stream
from streaming.tables import table_path
from streaming.transforms.raw_rows import history_rows


def start_history(session: SparkSession, config: PipelineConfig, topic: str) -> StreamingQuery:
    """Start the stream of ``heartbeats``, ``membership``, ``intents`` or ``dead-letters`` into its table.

    Delta's own streaming sink writes each batch once. Unusable records of the inputs are only counted here, because the
    leader writes their dead letters.
    """
    table = TABLE_OF_TOPIC[topic]
    records = read_stream(session, config.kafka, config.cluster.topic(topic), config.max_records_per_batch)
    rows = history_rows(_usable(records, topic, config.kafka.schema_ids), topic, table)
    return (
        # One file for each batch and core; otherwise it would be one for each of Kafka's partitions.
        rows.coalesce(config.spark.cores)
        .writeStream.format("delta")
        .queryName(table.name)
        .outputMode("append")
        .option("checkpointLocation", str(config.checkpoint_dir(table.name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .start(table_path(config.warehouse_dir, table))
    )


def _usable(records: DataFrame, topic: str, schema_ids: Mapping[int, str]) -> DataFrame:
    if topic == DEAD_LETTERS:
        return decoded_dead_letters(records)
    both = decoded(records, topic, schema_ids)
    counted = both.observe(
        RECORDS_OBSERVATION, F.count(F.lit(1)).alias("read"), F.count(F.col("refusal")).alias("refused")
    )
    return counted.where(F.col("refusal").isNull())

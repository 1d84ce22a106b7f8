"""Streams and batches of Kafka records, with every relevant option set explicitly."""

import json
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.config import KafkaConfig
from streaming.java_client import client_options

_LOG_APPEND_TIME: Final = 1
"""Spark's ``timestampType`` of a record whose time a broker's clock gave."""
_FETCH_MAX_WAIT_MS: Final = "10"
"""How long a broker waits with its answer to a fetch for records to come. Spark fetches only offsets that are there, so
a short wait costs nothing, but on tiered storage of old brokers: see docs/reference/platforms.md.

The client sends its next fetch before it returns records, and Spark then asks for the first and the last offset of the
partition. A broker answers the requests of a connection one after the other. With Kafka's default of 500 ms the
question would wait behind the fetch until a record comes, in each batch for each partition.
"""


def _reader_options(kafka: KafkaConfig) -> dict[str, str]:
    return {
        **client_options(kafka),
        "kafka.fetch.max.wait.ms": _FETCH_MAX_WAIT_MS,
        # The default reads what aborted transactions wrote.
        "kafka.isolation.level": "read_committed",
        # A gap in a history must stop it, not pass for a quiet time.
        "failOnDataLoss": "true",
        "includeHeaders": "false",
    }


def read_stream(session: SparkSession, kafka: KafkaConfig, topic: str, max_records_per_batch: int) -> DataFrame:
    """All committed records of a topic from its beginning, or from the query's checkpoint.

    Args:
        session: the session.
        kafka: where the log is.
        topic: the topic's whole name in Kafka.
        max_records_per_batch: over all partitions.

    Returns:
        Columns ``partition``, ``offset``, ``append_time_ms``, ``key``, ``value`` and ``is_append_time``, which is false
        where the topic keeps the sender's time.
    """
    options = {
        **_reader_options(kafka),
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(max_records_per_batch),
    }
    return _named(session.readStream.format("kafka").options(**options).load())


def read_range(session: SparkSession, kafka: KafkaConfig, topic: str, partition: int, offsets: range) -> DataFrame:
    """The committed records of one partition at these offsets, as far as Kafka still has them.

    The columns are those of :func:`read_stream`.
    """
    options = {
        **_reader_options(kafka),
        "failOnDataLoss": "false",
        "assign": json.dumps({topic: [partition]}),
        "startingOffsets": json.dumps({topic: {str(partition): offsets.start}}),
        "endingOffsets": json.dumps({topic: {str(partition): offsets.stop}}),
    }
    return _named(session.read.format("kafka").options(**options).load())


def _named(records: DataFrame) -> DataFrame:
    return records.select(
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("append_time_ms"),
        "key",
        "value",
        (F.col("timestampType") == _LOG_APPEND_TIME).alias("is_append_time"),
    )

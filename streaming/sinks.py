"""Records that are produced to Kafka, by executors."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from controlplane.config import KafkaConfig
from streaming.java_client import client_options

_RECORDS: Final = pa.schema([("key", pa.binary()), ("value", pa.binary())])


def produce(records: DataFrame, kafka: KafkaConfig, topic: str) -> None:
    """Append records (columns ``key`` and ``value``) to a topic, at least once; returns when Kafka has them all."""
    options = {
        **client_options(kafka),
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.compression.type": "lz4",
        "topic": topic,
    }
    records.select("key", "value").write.format("kafka").options(**options).save()


def produce_records(
    session: SparkSession, records: Sequence[tuple[bytes, bytes]], kafka: KafkaConfig, topic: str
) -> None:
    """As :func:`produce`, in their order, records that the driver has: keys and values of one at least."""
    # Spark takes rows apart in Python, one by one, and columns of Arrow as they are.
    columns = pa.table(list(zip(*records, strict=True)), schema=_RECORDS)
    produce(session.createDataFrame(columns).coalesce(1), kafka, topic)

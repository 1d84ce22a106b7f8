"""What executors write to Kafka."""

from pyspark.sql import DataFrame

from controlplane.config import KafkaConfig
from streaming.java_client import client_options


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

"""What streams of Spark write with: the name under which tables know a batch's writer, and records for Kafka.

The writer's name is the streaming query's own id, which is in the checkpoint. If the checkpoint is deleted, the query
gets a new id, so that its new batches are not taken for old ones, and left out in silence.
"""

from pyspark.sql import DataFrame

from controlplane.config import KafkaConfig
from controlplane.errors import InvariantViolationError
from streaming.sources import client_options


def query_id(batch: DataFrame) -> str:
    """The id of the streaming query that passes a batch to ``foreachBatch``.

    Raises:
        InvariantViolationError: Spark does not say it.
    """
    found = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        message = "Spark does not say which streaming query the batch belongs to: it could not be written once only"
        raise InvariantViolationError(message)
    return found


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

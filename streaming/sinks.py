"""Writing each batch once: Delta remembers the number of the last batch that a stream wrote to a table.

The application id is the streaming query's own id, which is in the checkpoint. If the checkpoint is deleted, the query
gets a new id, so that Delta does not take its new batches for old ones and drop them silently.
"""

from pyspark.sql import DataFrame

from controlplane.config import KafkaConfig
from controlplane.errors import InvariantViolationError
from streaming.contracts.table import TableContract
from streaming.sources import client_options
from streaming.storage import StoragePath
from streaming.tables import table_path


def append_once(rows: DataFrame, table: TableContract, warehouse_dir: StoragePath, app_id: str, batch_id: int) -> None:
    """Add rows to a table; has no effect if this batch was added before.

    Args:
        rows: have the table's columns.
        table: the table.
        warehouse_dir: where the tables are.
        app_id: the streaming query's id.
        batch_id: the batch's number, the same when it is repeated after a crash.
    """
    (
        rows.select(*table.columns)
        .write.format("delta")
        .mode("append")
        .option("txnAppId", app_id)
        .option("txnVersion", str(batch_id))
        .save(table_path(warehouse_dir, table))
    )


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

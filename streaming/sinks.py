"""Writing each batch once: Delta remembers the number of the last batch that a stream wrote to a table.

The application id is the streaming query's own id, which is in the checkpoint. If the checkpoint is deleted, the query
gets a new id, so that Delta does not take its new batches for old ones and drop them silently.
"""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from controlplane.config import KafkaConfig
from controlplane.errors import InvariantViolationError
from streaming.contracts.table import TableContract
from streaming.sources import client_options
from streaming.tables import table_path


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Writes the results of one micro-batch.

    Attributes:
        session: the batch's own session (not the application's): its settings are this stream's alone.
        warehouse_dir: where the tables are.
        app_id: the streaming query's id.
        batch_id: the batch's number, the same when it is repeated after a crash.
    """

    session: SparkSession
    warehouse_dir: Path
    app_id: str
    batch_id: int

    @classmethod
    def of(cls, batch: DataFrame, batch_id: int, warehouse_dir: Path) -> "BatchWriter":
        """The writer for a batch as ``foreachBatch`` passes it."""
        session = batch.sparkSession
        app_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not app_id:
            message = "Spark does not say which streaming query the batch belongs to: it could not be written once only"
            raise InvariantViolationError(message)
        return cls(session, warehouse_dir, app_id, batch_id)

    def append(self, rows: DataFrame, table: TableContract) -> None:
        """Add rows; has no effect if this batch was added before."""
        self._write(rows, table, "append")

    def replace(self, rows: DataFrame, table: TableContract) -> None:
        """Replace all rows of the table, in one version; has no effect if this batch did so before."""
        self._write(rows, table, "overwrite")

    def replace_partitions(self, rows: DataFrame, table: TableContract) -> None:
        """Replace the partitions that have rows here, in one version; has no effect if this batch did so before."""
        self._write(rows, table, "overwrite", partitionOverwriteMode="dynamic")

    def _write(self, rows: DataFrame, table: TableContract, mode: str, **options: str) -> None:
        (
            rows.select(*table.columns)
            .write.format("delta")
            .mode(mode)
            .options(**options)
            .option("txnAppId", self.app_id)
            .option("txnVersion", str(self.batch_id))
            .save(table_path(self.warehouse_dir, table))
        )


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

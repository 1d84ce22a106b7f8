"""Writing each batch once: Delta remembers the number of the last batch that a stream wrote to a table.

The application id is the streaming query's own id. It lives in the checkpoint: whoever deletes the checkpoint gets a
new one, and with it Delta does not take new batches for old ones and drop them in silence.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from controlplane.config import KafkaConfig
from controlplane.errors import InvariantViolationError
from streaming.sources import client_options
from streaming.table_contracts import TableContract
from streaming.tables import table_path

_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


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
        """The writer for a batch as ``foreachBatch`` hands it over."""
        session = batch.sparkSession
        app_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not app_id:
            message = "Spark does not say which streaming query the batch belongs to: it could not be written once only"
            raise InvariantViolationError(message)
        return cls(session, warehouse_dir, app_id, batch_id)

    def append(self, rows: DataFrame, table: TableContract) -> None:
        """Add rows; nothing happens when this batch has been added before."""
        (
            rows.select(*table.columns)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self.app_id)
            .option("txnVersion", str(self.batch_id))
            .save(table_path(self.warehouse_dir, table))
        )

    def merge(self, rows: DataFrame, table: TableContract, *, step: str = "") -> DataFrame:
        """Replace the rows with the same key, add the others; nothing happens when this batch was merged before.

        Args:
            rows: whole rows, one for a key.
            table: the table.
            step: names a second merge of the same batch into the same table, which Delta would drop otherwise.

        Returns:
            The rows, computed once and kept; also when the merge had been done before.
        """
        # MERGE reads its source twice, and refuses one that is cached.
        fresh = rows.select(*table.columns).localCheckpoint()
        same_key = " AND ".join(f"stored.{name} = fresh.{name}" for name in table.key)
        target = DeltaTable.forPath(self.session, table_path(self.warehouse_dir, table))
        with self._once(step):
            (
                target.alias("stored")
                .merge(fresh.alias("fresh"), same_key)
                .whenMatchedUpdateAll()
                .whenNotMatchedInsertAll()
                .execute()
            )
        return fresh

    @contextmanager
    def _once(self, step: str) -> Iterator[None]:
        """MERGE has no writer options: the same two settings go through the session."""
        self.session.conf.set(_TXN_APP_ID, f"{self.app_id}/{step}" if step else self.app_id)
        self.session.conf.set(_TXN_VERSION, str(self.batch_id))
        try:
            yield
        finally:
            self.session.conf.unset(_TXN_APP_ID)
            self.session.conf.unset(_TXN_VERSION)


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

"""The stream of load reports: history, dead letters, averages and candidates, each written once for a batch.

The order of the steps is what makes a crash harmless. Everything up to the averages may be repeated without effect.
Candidates are a function of the tables as the averages left them; they are produced and added before the smoothed
usages, which say that the evaluation took place, so a repeated batch evaluates the same again or finds it done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, DoubleType, StringType, StructField, StructType

from controlplane.codec.outputs import encode_candidate
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from controlplane.core.load.averages import MessageLoad
from streaming import tables
from streaming.config import PipelineConfig
from streaming.decode import dead_letter_records, decoded
from streaming.metrics import PipelineMetrics
from streaming.sinks import BatchWriter, produce
from streaming.sources import read_stream
from streaming.table_contracts import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    LOAD_REPORTS_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
    TableContract,
)
from streaming.transforms.averages import bundle_samples, folded_bundles
from streaming.transforms.candidates import (
    BundleFacts,
    Evaluation,
    NodeFacts,
    ShedRow,
    SplitRow,
    candidate_of,
    due_evaluation,
    evaluate,
)
from streaming.transforms.node_load import node_rows
from streaming.transforms.raw_rows import history_rows

_log = structlog.get_logger(__name__)

_RECORD_TYPE = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
_SMOOTHED_TYPE = StructType([StructField("node_id", StringType()), StructField("fresh_usage", DoubleType())])


def start_load(session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> StreamingQuery:
    """Start the stream of ``load-reports``."""
    topic = config.cluster.topic(LOAD_REPORTS)
    records = read_stream(session, config.kafka, topic, config.max_records_per_batch)

    def write(batch: DataFrame, batch_id: int) -> None:
        LoadBatch(BatchWriter.of(batch, batch_id, config.warehouse_dir), config, metrics).write(batch)

    return (
        records.writeStream.queryName(LOAD_REPORTS_TABLE.name)
        .option("checkpointLocation", str(config.checkpoint_dir(LOAD_REPORTS_TABLE.name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .foreachBatch(write)
        .start()
    )


@dataclass(frozen=True, slots=True)
class LoadBatch:
    """One batch of load reports.

    Attributes:
        writer: writes this batch's results.
        config: the pipeline's settings.
        metrics: counts what was refused and proposed.
    """

    writer: BatchWriter
    config: PipelineConfig
    metrics: PipelineMetrics

    def write(self, records: DataFrame) -> None:
        """Carry out every step for these records of ``load-reports``."""
        both = decoded(records.coalesce(self.config.spark.cores), LOAD_REPORTS).persist()
        try:
            reports = history_rows(both.where("refusal IS NULL"), LOAD_REPORTS, LOAD_REPORTS_TABLE)
            self.writer.append(reports, LOAD_REPORTS_TABLE)
            self._refuse(both)
            newest = reports.agg(F.max("append_time_ms")).first()
            if newest is None or newest[0] is None:
                return
            self._fold(reports)
            self._evaluate(now_ms=newest[0])
        finally:
            both.unpersist()

    def _refuse(self, both: DataFrame) -> None:
        refused = both.where("refusal IS NOT NULL")
        counts = refused.groupBy("refusal.reason").count().collect()
        if not counts:
            return
        topic = self.config.cluster.topic(DEAD_LETTERS)
        produce(dead_letter_records(refused, LOAD_REPORTS), self.config.kafka, topic)
        for reason, count in counts:
            self.metrics.dead_letters.labels(reason).inc(count)
            _log.info("load reports refused", reason=reason, count=count)

    def _fold(self, reports: DataFrame) -> None:
        samples = bundle_samples(reports)
        bundles = self.writer.merge(folded_bundles(samples, self._read(BUNDLE_LOAD_TABLE)), BUNDLE_LOAD_TABLE)
        nodes = node_rows(reports, bundles, self._read(BROKER_LOAD_TABLE), self.config.rules.shed.weights)
        self.writer.merge(nodes, BROKER_LOAD_TABLE)

    def _evaluate(self, now_ms: int) -> None:
        rules = self.config.rules
        broker_load = self._read(BROKER_LOAD_TABLE)
        last = cast("Row", broker_load.agg(F.max("smoothed_at_ms")).first())[0]
        evaluated_ms = due_evaluation(now_ms, last, rules.evaluation_interval_ms)
        if evaluated_ms is None:
            return
        nodes = [_node_facts(row) for row in broker_load.select(*NodeFacts._fields).collect()]
        bundle_load = self._read(BUNDLE_LOAD_TABLE)
        bundles = [_bundle_facts(row) for row in bundle_load.select(*BundleFacts._fields).collect()]
        evaluation = evaluate(nodes, bundles, evaluated_ms, now_ms, rules)
        self._propose(evaluation.splits, SPLIT_CANDIDATES_TABLE)
        self._propose(evaluation.sheds, SHED_CANDIDATES_TABLE)
        self._keep_smoothed(broker_load, evaluation)

    def _propose(self, rows: Sequence[SplitRow] | Sequence[ShedRow], table: TableContract) -> None:
        fresh = self._not_yet_there(rows, table)
        if not fresh:
            return
        session = self.writer.session
        candidates = [candidate_of(row) for row in fresh]
        records = [(candidate.bundle_id.encode(), encode_candidate(candidate)) for candidate in candidates]
        topic = self.config.cluster.topic(CANDIDATES)
        produce(session.createDataFrame(records, _RECORD_TYPE).coalesce(1), self.config.kafka, topic)
        self.writer.append(session.createDataFrame(fresh, table.schema).coalesce(1), table)
        for candidate in candidates:
            self.metrics.candidates.labels(candidate.action).inc()
        _log.info("candidates", action=candidates[0].action, bundles=[each.bundle_id for each in candidates])

    def _not_yet_there(
        self, rows: Sequence[SplitRow] | Sequence[ShedRow], table: TableContract
    ) -> list[SplitRow | ShedRow]:
        """Those whose evidence is new: a bundle without a new report was proposed before, with the same id."""
        if not rows:
            return []
        oldest = min(row.day for row in rows) - timedelta(milliseconds=self.config.rules.report_lifetime_ms, days=1)
        known = self._read(table).where(F.col("day") >= F.lit(oldest)).select("candidate_id").collect()
        there = {row["candidate_id"] for row in known}
        return [row for row in rows if row.candidate_id not in there]

    def _keep_smoothed(self, broker_load: DataFrame, evaluation: Evaluation) -> None:
        smoothed = self.writer.session.createDataFrame(list(evaluation.smoothed_usages.items()), _SMOOTHED_TYPE)
        fresh = F.col("fresh_usage").alias("smoothed_usage")
        at = F.lit(evaluation.evaluated_ms).cast("long").alias("smoothed_at_ms")
        kept = [name for name in BROKER_LOAD_TABLE.columns if not name.startswith("smoothed_")]
        rows = broker_load.join(smoothed, on="node_id", how="inner").select(*kept, fresh, at)
        self.writer.merge(rows, BROKER_LOAD_TABLE, step="evaluation")

    def _read(self, table: TableContract) -> DataFrame:
        return tables.read(self.writer.session, self.config.warehouse_dir, table)


def _node_facts(row: Row) -> NodeFacts:
    facts = NodeFacts(*row)
    return facts._replace(reported=MessageLoad(*facts.reported))


def _bundle_facts(row: Row) -> BundleFacts:
    facts = BundleFacts(*row)
    return facts._replace(short_term=_figures(row["short_term"]), long_term=_figures(row["long_term"]))


def _figures(average: Row) -> MessageLoad:
    return MessageLoad(*(average[name] for name in MessageLoad._fields))

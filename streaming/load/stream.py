"""The stream of load reports: history, dead letters, averages and candidates, each written once for a batch.

A crash is harmless because of the order of the steps. Every step up to the averages can be repeated without effect.
Candidates are a function of the averages. They are produced and added before the nodes' rows, whose smoothed usages
record that the evaluation took place. A repeated batch therefore evaluates the same again, or finds it done.

The work and the state of bundles are divided by bucket over the executors. The driver keeps one row for each node, and
sees of the bundles only those that a rule may choose: docs/decisions/0034-load-state-in-buckets.md says why.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, StructField, StructType

from controlplane.codec.outputs import encode_candidate
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from streaming import tables
from streaming.config import PipelineConfig
from streaming.decode import dead_letter_records
from streaming.load.batch_summary import summary_of, wrong_figures
from streaming.load.bucket_fold import folded, samples_of
from streaming.load.candidates import (
    Evaluation,
    ShedRow,
    SplitRow,
    candidate_of,
    counted_nodes,
    due_evaluation,
    evaluate,
)
from streaming.load.decoding import decoded_reports
from streaming.load.incarnations import counting, limits, newest_nodes
from streaming.load.owned_bundles import StoredBundles
from streaming.load.rows import NodeState
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
from streaming.transforms.raw_rows import history_rows

_log = structlog.get_logger(__name__)

_RECORD_TYPE: Final = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


def start_load(session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> StreamingQuery:
    """Start the stream of ``load-reports``, from its checkpoint and from the contents of its tables."""
    stream = LoadStream(session, config, metrics)
    records = read_stream(session, config.kafka, config.cluster.topic(LOAD_REPORTS), config.max_records_per_batch)
    return (
        records.writeStream.queryName(LOAD_REPORTS_TABLE.name)
        .option("checkpointLocation", str(config.checkpoint_dir(LOAD_REPORTS_TABLE.name)))
        .trigger(processingTime=f"{config.trigger_interval_ms} milliseconds")
        .foreachBatch(
            lambda batch, batch_id: stream.write(batch, BatchWriter.of(batch, batch_id, config.warehouse_dir))
        )
        .start()
    )


class LoadStream:
    """One run of the stream. After a failed run the next one reads the nodes from their table again.

    Args:
        session: reads the tables.
        config: the pipeline's settings.
        metrics: counts what was refused and proposed.
    """

    def __init__(self, session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> None:
        self._config = config
        self._metrics = metrics
        rows = tables.read(session, config.warehouse_dir, BROKER_LOAD_TABLE).collect()
        self._nodes = {node.node_id: node for node in map(NodeState.of_row, rows)}
        self._bucket_count = tables.bucket_count(session, config.warehouse_dir)

    def write(self, records: DataFrame, writer: BatchWriter) -> None:
        """Carry out every step for one batch of records of ``load-reports``."""
        weights = self._config.rules.shed.weights
        in_parts = records.coalesce(self._config.spark.cores)
        both = decoded_reports(in_parts, self._config.kafka.schema_ids, weights).persist()
        try:
            usable = both.where("refusal IS NULL")
            writer.append(history_rows(usable, LOAD_REPORTS, LOAD_REPORTS_TABLE), LOAD_REPORTS_TABLE)
            summary = summary_of(both)
            if summary.refused:
                self._refuse(both, summary.refused)
            if summary.newest_ms is None:
                return
            if summary.has_wrong_figures:
                self._tell_wrong_figures(usable)
            counted = counting(usable, limits(summary.runs, self._nodes))
            stored = self._stored_bundles(writer)
            writer.replace_partitions(folded(stored, samples_of(counted, self._bucket_count)), BUNDLE_LOAD_TABLE)
        finally:
            both.unpersist()
        for node in newest_nodes(summary.runs):
            self._nodes[node.node_id] = node.after(self._nodes.get(node.node_id))
        self._evaluate(summary.newest_ms, writer)
        rows = [node.row() for node in self._nodes.values()]
        frame = writer.session.createDataFrame(rows, BROKER_LOAD_TABLE.schema, verifySchema=False)
        writer.replace(frame.coalesce(1), BROKER_LOAD_TABLE)

    def _stored_bundles(self, writer: BatchWriter) -> DataFrame:
        return tables.read(writer.session, self._config.warehouse_dir, BUNDLE_LOAD_TABLE)

    def _refuse(self, both: DataFrame, refused: Mapping[str, int]) -> None:
        letters = dead_letter_records(both.where("refusal IS NOT NULL"), LOAD_REPORTS)
        produce(letters, self._config.kafka, self._config.cluster.topic(DEAD_LETTERS))
        for reason, count in refused.items():
            self._metrics.dead_letters.labels(reason).inc(count)
            _log.info("load reports refused", reason=reason, count=count)

    def _tell_wrong_figures(self, usable: DataFrame) -> None:
        """Count and log figures that cannot be true. Their records are usable, and so are in the history."""
        counts, first = wrong_figures(usable)
        for name, count in counts.items():
            self._metrics.implausible_figures.labels(name).inc(count)
        text = "figures of load reports passed over: they cannot be true"
        _log.warning(text, count=sum(counts.values()), first=[figure._asdict() for figure in first])

    def _evaluate(self, now_ms: int, writer: BatchWriter) -> None:
        rules = self._config.rules
        times = (node.smoothed_at_ms for node in self._nodes.values() if node.smoothed_at_ms is not None)
        last_evaluated_ms = max(times, default=None)
        evaluated_ms = due_evaluation(now_ms, last_evaluated_ms, rules.evaluation_interval_ms)
        if evaluated_ms is None:
            return
        counted = counted_nodes(self._nodes.values(), now_ms, rules)
        bundles = StoredBundles(self._stored_bundles(writer), counted, now_ms, rules.grace_period_ms)
        evaluation = evaluate(counted, bundles, evaluated_ms, last_evaluated_ms, rules)
        self._propose(evaluation.splits, SPLIT_CANDIDATES_TABLE, writer)
        self._propose(evaluation.sheds, SHED_CANDIDATES_TABLE, writer)
        self._keep(evaluation)

    def _keep(self, evaluation: Evaluation) -> None:
        for node_id, sums in evaluation.sums.items():
            self._nodes[node_id] = self._nodes[node_id]._replace(
                sums=sums,
                smoothed_usage=evaluation.smoothed_usages[node_id],
                smoothed_at_ms=evaluation.evaluated_ms,
            )

    def _propose(self, rows: Sequence[SplitRow] | Sequence[ShedRow], table: TableContract, writer: BatchWriter) -> None:
        """Produce and add the candidates whose evidence is new: a bundle without a new report was proposed before."""
        session = writer.session
        if not rows:
            return
        proposed = _proposed_before(session, self._config, table, [row.candidate_id for row in rows])
        fresh = [row for row in rows if row.candidate_id not in proposed]
        if not fresh:
            return
        candidates = [candidate_of(row) for row in fresh]
        records = [(candidate.bundle_id.encode(), encode_candidate(candidate)) for candidate in candidates]
        topic = self._config.cluster.topic(CANDIDATES)
        produce(session.createDataFrame(records, _RECORD_TYPE).coalesce(1), self._config.kafka, topic)
        writer.append(session.createDataFrame(fresh, table.schema).coalesce(1), table)
        for candidate in candidates:
            self._metrics.candidates.labels(candidate.action).inc()
        _log.info("candidates", action=candidates[0].action, bundles=[each.bundle_id for each in candidates])


def _proposed_before(
    session: SparkSession, config: PipelineConfig, table: TableContract, candidate_ids: Sequence[str]
) -> frozenset[str]:
    """Those of the candidates that are in the table. The id of a candidate names the report on which it rests."""
    ids = session.createDataFrame([(each,) for each in candidate_ids], "candidate_id string")
    there = tables.read(session, config.warehouse_dir, table).select("candidate_id")
    return frozenset(row["candidate_id"] for row in there.join(F.broadcast(ids), "candidate_id", "left_semi").collect())

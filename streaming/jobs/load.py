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

from controlplane.codec.outputs import encode_candidate
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from controlplane.core.bundles.load.incarnations import cutoffs, newest_nodes
from streaming import tables
from streaming.config import PipelineConfig
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.contracts.table import TableContract
from streaming.created_tables import stored_bucket_count
from streaming.decode import KEY_VALUE_TYPE, dead_letter_records
from streaming.load.batch_summary import implausible_figures, summary_of
from streaming.load.before_cutoffs import before_cutoffs
from streaming.load.bucket_fold import bucket_numbers, folded, samples_of
from streaming.load.candidates import (
    Evaluation,
    ShedRow,
    SplitRow,
    candidate_of,
    counted_nodes,
    day_of_ms,
    due_evaluation,
    evaluate,
    last_evaluation_ms,
)
from streaming.load.decoding import decoded_reports
from streaming.load.rows import node_of, node_row
from streaming.load.stored_bundles import StoredBundles
from streaming.metrics import PipelineMetrics
from streaming.sinks import BatchWriter, produce
from streaming.sources import read_stream
from streaming.transforms.raw_rows import history_rows

_TOLD_CANDIDATES: Final = 10
"""How many candidates of an evaluation are told by their names."""

_log = structlog.get_logger(__name__)


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
        self._nodes = {node.node_id: node for node in map(node_of, rows)}
        self._buckets = bucket_numbers(session, stored_bucket_count(config.warehouse_dir, BUNDLE_LOAD_TABLE))

    def write(self, records: DataFrame, writer: BatchWriter) -> None:
        """Carry out every step for one batch of records of ``load-reports``."""
        weights = self._config.rules.shed.weights
        in_parts = records.coalesce(self._config.spark.cores)
        decoded = decoded_reports(in_parts, self._config.kafka.schema_ids, weights).persist()
        try:
            usable = decoded.where("refusal IS NULL")
            writer.append(history_rows(usable, LOAD_REPORTS, LOAD_REPORTS_TABLE), LOAD_REPORTS_TABLE)
            summary = summary_of(decoded)
            if summary.refused:
                self._refuse(decoded, summary.refused)
            if summary.newest_ms is None:
                return
            if summary.has_implausible_figures:
                self._tell_implausible_figures(usable)
            counting = before_cutoffs(usable, cutoffs(summary.incarnations, self._nodes))
            stored = self._stored_bundles(writer)
            writer.replace_partitions(folded(stored, samples_of(counting, self._buckets)), BUNDLE_LOAD_TABLE)
        finally:
            decoded.unpersist()
        for node in newest_nodes(summary.incarnations):
            self._nodes[node.node_id] = node.after(self._nodes.get(node.node_id))
        self._evaluate(summary.newest_ms, writer)
        rows = [node_row(node) for node in self._nodes.values()]
        frame = writer.session.createDataFrame(rows, BROKER_LOAD_TABLE.schema, verifySchema=False)
        writer.replace(frame.coalesce(1), BROKER_LOAD_TABLE)

    def _stored_bundles(self, writer: BatchWriter) -> DataFrame:
        return tables.read(writer.session, self._config.warehouse_dir, BUNDLE_LOAD_TABLE)

    def _refuse(self, decoded: DataFrame, refused: Mapping[str, int]) -> None:
        letters = dead_letter_records(decoded.where("refusal IS NOT NULL"), LOAD_REPORTS)
        produce(letters, self._config.kafka, self._config.cluster.topic(DEAD_LETTERS))
        for reason, count in refused.items():
            self._metrics.dead_letters.labels(reason).inc(count)
            _log.info("load reports refused", reason=reason, count=count)

    def _tell_implausible_figures(self, usable: DataFrame) -> None:
        """Count and log figures that cannot be true. Their records are usable, and so are in the history."""
        counts, first = implausible_figures(usable)
        for name, count in counts.items():
            self._metrics.implausible_figures.labels(name).inc(count)
        text = "figures of load reports passed over: they cannot be true"
        _log.warning(text, count=sum(counts.values()), first=[figure._asdict() for figure in first])

    def _evaluate(self, now_ms: int, writer: BatchWriter) -> None:
        rules = self._config.rules
        last_evaluated_ms = last_evaluation_ms(self._nodes.values())
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
        proposed = _proposed_before(session, self._config, table, rows)
        fresh = [row for row in rows if row.candidate_id not in proposed]
        if not fresh:
            return
        candidates = [candidate_of(row) for row in fresh]
        records = [(candidate.bundle_id.encode(), encode_candidate(candidate)) for candidate in candidates]
        topic = self._config.cluster.topic(CANDIDATES)
        produce(session.createDataFrame(records, KEY_VALUE_TYPE).coalesce(1), self._config.kafka, topic)
        writer.append(session.createDataFrame(fresh, table.schema).coalesce(1), table)
        for candidate in candidates:
            self._metrics.candidates.labels(candidate.action).inc()
        first = [candidate.bundle_id for candidate in candidates[:_TOLD_CANDIDATES]]
        _log.info("candidates", action=candidates[0].action, count=len(candidates), first=first)


def _proposed_before(
    session: SparkSession, config: PipelineConfig, table: TableContract, rows: Sequence[SplitRow] | Sequence[ShedRow]
) -> frozenset[str]:
    """The ids of those candidates that are in the table. An id names the report on which the candidate rests.

    No evaluation before that report can have proposed it, so older days are not read.
    """
    ids = session.createDataFrame([(row.candidate_id,) for row in rows], "candidate_id string")
    oldest_day = day_of_ms(min(row.window_end_ms for row in rows) - config.rules.evaluation_interval_ms)
    there = tables.read(session, config.warehouse_dir, table).where(F.col("day") >= F.lit(oldest_day))
    return frozenset(row["candidate_id"] for row in there.join(F.broadcast(ids), "candidate_id", "left_semi").collect())

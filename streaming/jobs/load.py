"""The stream of load reports: their rows, dead letters, averages and candidates.

Rows of tables are written once for a batch. Records of the topics ``dead-letters`` and ``candidates`` are produced at
least once, with the same key and the same content each time.

A crash is harmless because of the order of the steps. Those up to the averages change no table twice. Candidates are a
function of the averages. They are produced and added before the nodes' rows, whose smoothed usages record that the
evaluation took place. A repeated batch therefore evaluates the same again, or finds it done.

What time it is in the log is what the newest report of a batch says, by the clock of a broker. A report that is dated
ahead of the driver's clock by more than an allowance says nothing of that; if all of them are, it is the driver's time.
The driver's clock is read once for a batch, and stands in the commit of the averages. What is written before that
commit does not depend on it, and what is written behind it takes it from there: so a repeated batch evaluates at the
same time, for the same nodes.

The work and the state of bundles are divided by bucket over the executors, which read and write the tables' files
themselves. The driver commits them, keeps one row for each node, and sees of the bundles only those that a rule may
choose: docs/decisions/0034-load-state-in-buckets.md, 0036, 0042 and 0043 say why.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.codec.outputs import encode_candidate
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from controlplane.core.bundles.load.incarnations import cutoffs, newest_nodes
from streaming.broker_clocks import CLOCK_ALLOWANCE_MS, BrokerClocks
from streaming.config import PipelineConfig
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.contracts.table import TableContract
from streaming.jobs.topic_streams import start_topic_stream
from streaming.load.batch_summary import implausible_figures, summary_of
from streaming.load.bucket_files import StoredBuckets
from streaming.load.bucket_fold import folded_files
from streaming.load.buckets import bucket_numbers
from streaming.load.candidates import (
    Evaluation,
    ShedRow,
    SplitRow,
    candidate_of,
    counted_nodes,
    due_evaluation,
    evaluate,
    last_evaluation_ms,
)
from streaming.load.decoded_rows import block_rows, refused_rows, report_files
from streaming.load.decoding import decoded_reports
from streaming.load.gone_bundles import GoneBundles
from streaming.load.proposals import proposed_before
from streaming.load.state_rows import node_of, node_row
from streaming.load.stored_bundles import StoredBundles
from streaming.metrics import PipelineMetrics
from streaming.records.decode import dead_letter_records
from streaming.sinks import produce, produce_records
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter

_CLOCK_MS: Final = "controlplane.bundle_load.clock_ms"
"""The name under which the driver's clock stands in the commit of a batch's averages."""
_TOLD_CANDIDATES: Final = 10
"""How many candidates of an evaluation are told by their names."""

_log = structlog.get_logger(__name__)


def start_load(session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> StreamingQuery:
    """Start the stream of ``load-reports``, from its checkpoint and from the contents of its tables."""
    return start_topic_stream(session, config, LOAD_REPORTS, LoadBatchWriter(session, config, metrics))


class LoadBatchWriter:
    """One run of the stream. After a failed run the next one reads the nodes from their table again.

    Args:
        session: executes what executors do.
        config: the pipeline's settings.
        metrics: counts what was refused and proposed.
    """

    def __init__(self, session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> None:
        self._config = config
        self._metrics = metrics
        self._clocks = BrokerClocks(LOAD_REPORTS, metrics.clock_ahead.labels(LOAD_REPORTS_TABLE.name))
        self._gone: GoneBundles | None = None
        self._tables: dict[str, TableWriter] = {}
        rows = StoredTable(config.tables_dir, BROKER_LOAD_TABLE).rows().to_pylist()
        self._nodes = {node.node_id: node for node in map(node_of, rows)}
        bundles = StoredTable(config.tables_dir, BUNDLE_LOAD_TABLE)
        self._buckets = bucket_numbers(session, bundles.bucket_count)

    def write(self, records: DataFrame, query_id: str, batch_id: int) -> None:
        """Carry out every step for one batch of records of ``load-reports``.

        Args:
            records: the batch.
            query_id: that of the streaming query: a batch is known by it and its number.
            batch_id: the number, the same when the batch is repeated after a crash.
        """
        tables = (LOAD_REPORTS_TABLE, BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE)
        reports, bundles, nodes = (self._table(each, query_id) for each in tables)
        clock_ms = self._clock_ms(bundles, batch_id)
        latest_ms = clock_ms + CLOCK_ALLOWANCE_MS
        weights = self._config.rules.shed.weights
        in_parts = records.coalesce(self._config.spark.cores)
        decoded = decoded_reports(
            in_parts, self._config.kafka.schema_ids, weights, reports.folder, self._buckets
        ).persist()
        try:
            summary = summary_of(decoded, latest_ms)
            if not reports.has(batch_id):
                reports.append_files(report_files(decoded), batch_id)
            if summary.refused:
                self._refuse(decoded, summary.refused)
            if not summary.newest_ms:
                for table in (bundles, nodes):  # its number there, last in that of nodes, says that the batch is done
                    if not table.has(batch_id):
                        table.append((), batch_id)
                return
            self._clocks.see(summary.newest_ms, clock_ms)
            if summary.has_implausible_figures:
                self._tell_implausible_figures(decoded)
            if not bundles.has(batch_id):
                ends = cutoffs(summary.incarnations, self._nodes)
                files = folded_files(block_rows(decoded), bundles.folder, bundles.files_of_buckets(), ends)
                positions = {_CLOCK_MS: clock_ms, **self._gone_bundles(bundles).position}
                bundles.replace_bucket_files(files, batch_id, positions)
        finally:
            decoded.unpersist()
        for node in newest_nodes(summary.incarnations):
            self._nodes[node.node_id] = node.after(self._nodes.get(node.node_id))
        now_ms = clock_ms if summary.log_time_ms is None else summary.log_time_ms
        self._evaluate(records.sparkSession, now_ms, latest_ms, query_id, batch_id)
        if not nodes.has(batch_id):
            nodes.replace(map(node_row, self._nodes.values()), batch_id)

    def _table(self, contract: TableContract, query_id: str) -> TableWriter:
        """A table as the query sees it, whose id is known with the first batch."""
        if contract.name not in self._tables:
            self._tables[contract.name] = TableWriter(self._config.tables_dir, contract, query_id)
        return self._tables[contract.name]

    def _gone_bundles(self, table: TableWriter) -> GoneBundles:
        self._gone = self._gone or GoneBundles(self._config.tables_dir, table)
        return self._gone

    def _clock_ms(self, table: TableWriter, batch_id: int) -> int:
        """The driver's clock at the beginning of a batch, also if the batch is repeated after its commit."""
        recorded_ms = table.position(_CLOCK_MS)
        return recorded_ms if recorded_ms is not None and table.has(batch_id) else time.time_ns() // 1_000_000

    def _refuse(self, decoded: DataFrame, refused: Mapping[str, int]) -> None:
        letters = dead_letter_records(refused_rows(decoded), LOAD_REPORTS)
        produce(letters, self._config.kafka, self._config.cluster.topic(DEAD_LETTERS))
        for reason, count in refused.items():
            self._metrics.dead_letters.labels(reason).inc(count)
            _log.info("load reports refused", reason=reason, count=count)

    def _tell_implausible_figures(self, decoded: DataFrame) -> None:
        """Count and log figures that cannot be true. Their records are usable, and so are in ``load_reports``."""
        counts, first = implausible_figures(decoded)
        for name, count in counts.items():
            self._metrics.implausible_figures.labels(name).inc(count)
        text = "figures of load reports passed over: they cannot be true"
        _log.warning(text, count=sum(counts.values()), first=[figure._asdict() for figure in first])

    def _evaluate(self, session: SparkSession, now_ms: int, latest_ms: int, query_id: str, batch_id: int) -> None:
        rules = self._config.rules
        last_evaluated_ms = last_evaluation_ms(self._nodes.values(), latest_ms)
        evaluated_ms = due_evaluation(now_ms, last_evaluated_ms, rules.evaluation_interval_ms)
        if evaluated_ms is None:
            return
        counted = counted_nodes(self._nodes.values(), now_ms, rules)
        table = self._table(BUNDLE_LOAD_TABLE, query_id)
        self._gone_bundles(table).forget(session, now_ms, batch_id)
        buckets = StoredBuckets(session, table.folder, table.files_of_buckets())
        bundles = StoredBundles(buckets, counted, now_ms, rules.grace_period_ms)
        evaluation = evaluate(counted, bundles, evaluated_ms, last_evaluated_ms, rules)
        self._propose(session, evaluation.splits, self._table(SPLIT_CANDIDATES_TABLE, query_id), batch_id)
        self._propose(session, evaluation.sheds, self._table(SHED_CANDIDATES_TABLE, query_id), batch_id)
        self._keep(evaluation)

    def _keep(self, evaluation: Evaluation) -> None:
        for node_id, sums in evaluation.sums.items():
            self._nodes[node_id] = self._nodes[node_id]._replace(
                sums=sums,
                smoothed_usage=evaluation.smoothed_usages[node_id],
                smoothed_at_ms=evaluation.evaluated_ms,
            )

    def _propose(
        self, session: SparkSession, rows: Sequence[SplitRow] | Sequence[ShedRow], table: TableWriter, batch_id: int
    ) -> None:
        """Produce and add the candidates whose evidence is new: a bundle without a new report was proposed before."""
        if not rows or table.has(batch_id):
            return
        proposed = proposed_before(table, rows, self._config.rules)
        fresh = [row for row in rows if row.candidate_id not in proposed]
        if not fresh:
            return
        candidates = [candidate_of(row) for row in fresh]
        records = [(candidate.bundle_id.encode(), encode_candidate(candidate)) for candidate in candidates]
        topic = self._config.cluster.topic(CANDIDATES)
        produce_records(session, records, self._config.kafka, topic)
        table.append((row._asdict() for row in fresh), batch_id)
        for candidate in candidates:
            self._metrics.candidates.labels(candidate.action).inc()
        first = [candidate.bundle_id for candidate in candidates[:_TOLD_CANDIDATES]]
        _log.info("candidates", action=candidates[0].action, count=len(candidates), first=first)

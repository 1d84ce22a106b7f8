"""The stream of load reports: history, dead letters, averages and candidates, each written once for a batch.

A crash is harmless because of the order of the steps. Every step up to the averages can be repeated without effect.
Candidates are a function of the averages. They are produced and added before the nodes' rows, whose smoothed usages
record that the evaluation took place. A repeated batch therefore evaluates the same again, or finds it done.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, StructField, StructType

from controlplane.codec.outputs import encode_candidate
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from controlplane.core.bundles.load.plausible import Implausible
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming import tables
from streaming.config import PipelineConfig
from streaming.decode import dead_letter_records, decoded
from streaming.load_state import LoadState, PlacedReport, Position, Resources
from streaming.metrics import PipelineMetrics
from streaming.sinks import BatchWriter, produce
from streaming.sources import read_stream
from streaming.stored_repair import repaired
from streaming.table_contracts import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    LOAD_REPORTS_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
    TableContract,
)
from streaming.transforms.candidates import ShedRow, SplitRow, candidate_of, due_evaluation, evaluate
from streaming.transforms.raw_rows import history_rows

_log = structlog.get_logger(__name__)

_RECORD_TYPE: Final = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])
_TOLD_FIGURES: Final = 10
"""How many figures that cannot be true one line of the log names."""
_COUNTED: Final = ("node_id", "incarnation", *Resources._fields, "version", "bundles")
"""The columns of a report that count."""


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
    """One run of the stream. After a failed run the next one reads its state from the tables again.

    Args:
        session: reads the tables.
        config: the pipeline's settings.
        metrics: counts what was refused and proposed.
    """

    def __init__(self, session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> None:
        self._config = config
        self._metrics = metrics
        bundles, nodes = (
            tables.read(session, config.warehouse_dir, table).collect()
            for table in (BUNDLE_LOAD_TABLE, BROKER_LOAD_TABLE)
        )
        self._state, wrong = repaired(LoadState.of_rows(bundles, nodes))
        self._tell(wrong, "stored loads begin again: figures that cannot be true")
        self._proposed = {
            table.name: _last_proposals(session, config, table)
            for table in (SPLIT_CANDIDATES_TABLE, SHED_CANDIDATES_TABLE)
        }

    def write(self, records: DataFrame, writer: BatchWriter) -> None:
        """Carry out every step for one batch of records of ``load-reports``."""
        both = decoded(
            records.coalesce(self._config.spark.cores), LOAD_REPORTS, self._config.kafka.schema_ids
        ).persist()
        try:
            writer.append(
                history_rows(both.where("refusal IS NULL"), LOAD_REPORTS, LOAD_REPORTS_TABLE), LOAD_REPORTS_TABLE
            )
            usable, refused = _taken_apart(both)
            if refused:
                self._refuse(both, refused)
        finally:
            both.unpersist()
        if usable:
            self._fold(usable, writer)

    def _refuse(self, both: DataFrame, refused: Mapping[str, int]) -> None:
        letters = dead_letter_records(both.where("refusal IS NOT NULL"), LOAD_REPORTS)
        produce(letters, self._config.kafka, self._config.cluster.topic(DEAD_LETTERS))
        for reason, count in refused.items():
            self._metrics.dead_letters.labels(reason).inc(count)
            _log.info("load reports refused", reason=reason, count=count)

    def _fold(self, reports: Sequence[PlacedReport], writer: BatchWriter) -> None:
        wrong = self._state.fold(reports, self._config.rules.shed.weights)
        self._tell(wrong, "figures of load reports passed over: they cannot be true")
        self._replace(BUNDLE_LOAD_TABLE, self._state.bundle_rows(), writer)
        self._evaluate(max(report.position.append_time_ms for report in reports), writer)
        self._replace(BROKER_LOAD_TABLE, self._state.node_rows(), writer)

    def _tell(self, wrong: Sequence[Implausible], sentence: str) -> None:
        """Count and log figures that cannot be true. Their records are usable, and so are in the history."""
        for figure in wrong:
            self._metrics.implausible_figures.labels(figure.name).inc()
        if wrong:
            _log.warning(sentence, count=len(wrong), first=[figure._asdict() for figure in wrong[:_TOLD_FIGURES]])

    def _replace(self, table: TableContract, rows: list[tuple[object, ...]], writer: BatchWriter) -> None:
        writer.replace(writer.session.createDataFrame(rows, table.schema, verifySchema=False).coalesce(1), table)

    def _evaluate(self, now_ms: int, writer: BatchWriter) -> None:
        rules = self._config.rules
        evaluated_ms = due_evaluation(now_ms, self._state.evaluated_ms, rules.evaluation_interval_ms)
        if evaluated_ms is None:
            return
        evaluation = evaluate(self._state, evaluated_ms, now_ms, rules)
        self._propose(evaluation.splits, SPLIT_CANDIDATES_TABLE, writer)
        self._propose(evaluation.sheds, SHED_CANDIDATES_TABLE, writer)
        self._state.keep_smoothed(evaluation.smoothed_usages, evaluated_ms)

    def _propose(self, rows: Sequence[SplitRow] | Sequence[ShedRow], table: TableContract, writer: BatchWriter) -> None:
        """Produce and add the candidates whose evidence is new: a bundle without a new report was proposed before."""
        proposed = self._proposed[table.name]
        fresh = [row for row in rows if proposed.get(row.bundle_id) != row.candidate_id]
        if not fresh:
            return
        candidates = [candidate_of(row) for row in fresh]
        records = [(candidate.bundle_id.encode(), encode_candidate(candidate)) for candidate in candidates]
        session = writer.session
        topic = self._config.cluster.topic(CANDIDATES)
        produce(session.createDataFrame(records, _RECORD_TYPE).coalesce(1), self._config.kafka, topic)
        writer.append(session.createDataFrame(fresh, table.schema).coalesce(1), table)
        proposed.update({row.bundle_id: row.candidate_id for row in fresh})
        for candidate in candidates:
            self._metrics.candidates.labels(candidate.action).inc()
        _log.info("candidates", action=candidates[0].action, bundles=[each.bundle_id for each in candidates])


def _taken_apart(both: DataFrame) -> tuple[list[PlacedReport], dict[str, int]]:
    """The usable reports, and how many were refused by reason."""
    wanted = (f"payload.{name}" for name in _COUNTED)
    usable: list[PlacedReport] = []
    refused: dict[str, int] = {}
    for row in both.select("refusal.reason", *Position._fields, *wanted).collect():
        if row["reason"] is None:
            usable.append(_placed_report(row))
        else:
            refused[row["reason"]] = refused.get(row["reason"], 0) + 1
    return usable, refused


def _placed_report(row: Row) -> PlacedReport:
    return PlacedReport(
        Position(*(row[name] for name in Position._fields)),
        row["node_id"],
        row["incarnation"],
        Resources(*(ResourceUsage(*row[name]) for name in Resources._fields)),
        row["version"],
        [BundleLoad(*bundle) for bundle in row["bundles"]],
    )


def _last_proposals(session: SparkSession, config: PipelineConfig, table: TableContract) -> dict[str, str]:
    """By bundle, the candidate that was proposed last, if its report may still count."""
    rows = tables.read(session, config.warehouse_dir, table)
    newest_day = rows.agg(F.max("day")).first()
    if newest_day is None or newest_day[0] is None:
        return {}
    oldest = newest_day[0] - timedelta(milliseconds=config.rules.report_lifetime_ms, days=1)
    known: Iterable[Row] = rows.where(F.col("day") >= F.lit(oldest)).orderBy("evaluated_ms").collect()
    return {row["bundle_id"]: row["candidate_id"] for row in known}

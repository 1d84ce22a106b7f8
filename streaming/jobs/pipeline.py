"""The application: all streams of a cluster in one Spark session, restarted after failures, until it is stopped."""

import threading
from collections.abc import Callable
from functools import partial

import structlog
from pyspark.sql import SparkSession

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from streaming.config import PipelineConfig
from streaming.continuity.gaps import KeptOffsets, TopicIds
from streaming.continuity.lost_checkpoints import refuse_lost_checkpoints
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.jobs.changes import CHANGES, start_changes
from streaming.jobs.continuous_starts import ContinuousStarts
from streaming.jobs.decision_log import start_decisions
from streaming.jobs.load import start_load
from streaming.jobs.load_history import LOAD_HISTORY, start_load_history
from streaming.jobs.records import start_records
from streaming.jobs.restarts import RestartedStream, Running
from streaming.jobs.running_streams import run_streams
from streaming.metrics import PipelineMetrics, ProgressListener
from streaming.session import build_session
from streaming.tables.claim import claimed
from streaming.tables.created_tables import create_missing
from streaming.tables.tables_folder import name_cluster

_log = structlog.get_logger(__name__)


def run(
    config: PipelineConfig,
    stop: threading.Event,
    kept: KeptOffsets,
    topic_ids: TopicIds,
    on_started: Callable[[SparkSession], None] | None = None,
    metrics: PipelineMetrics | None = None,
    *,
    accepts_gap: bool = False,
) -> None:
    """Run every stream until ``stop`` is set; blocks. A restart resumes at the checkpoints.

    Args:
        config: the settings.
        stop: ends the pipeline. A running batch is aborted, and repeated by the next start.
        kept: asks Kafka what it has, first and before each start of a stream.
        topic_ids: asks Kafka for the ids of topics, as often.
        on_started: called once when all streams run, with the session.
        metrics: the metrics to update; None registers a set with Prometheus' default registry.
        accepts_gap: whether this start records what Kafka no longer has, and passes it. Later losses stop a stream.

    Raises:
        PrerequisiteError: Spark does not start or its executors lack the package, the tables are those of another
            version or cluster, another pipeline writes them, a checkpoint is missing or damaged, a topic is missing, or
            a disk is full.
        FencedError: another pipeline has taken the tables over, or the claim on them could not be renewed.
        LogUnavailableError: Kafka does not answer at the start, or a stream failed too often in a row; then the message
            contains its last failure.
        RetryableError: the checkpoints' storage does not answer at the start.
        LogContinuityError: the decision log has a gap, Kafka no longer has what was not read, or a topic was recreated.
        UnsupportedFeatureLevelError: a newer version wrote a decision.
        InvariantViolationError: a stream found that its own state contradicts itself.
        ConfigurationError: Kafka refuses the login, or does not allow what the pipeline needs.
        Exception: the first start of a stream failed otherwise, or the maintenance did, other than for one table.
    """
    name_cluster(config.tables_dir, config.cluster.name)
    with claimed(config.tables_dir, stop) as is_held:
        if not is_held:
            return
        create_missing(config.tables_dir, config.bucket_count)
        refuse_lost_checkpoints(config)
        updated = metrics or PipelineMetrics()
        starts = ContinuousStarts(config, kept, topic_ids, updated)
        starts.prepare(accepts_gap=accepts_gap)
        if stop.is_set():  # asked of Kafka, which takes a while if it does not answer, and a session takes 5 to 20 s
            return
        session = build_session(f"controlplane-pipeline-{config.cluster.name}", config.spark, reads_topics=True)
        try:
            _run_in(session, config, stop, on_started, updated, starts)
        finally:
            session.stop()


def _run_in(
    session: SparkSession,
    config: PipelineConfig,
    stop: threading.Event,
    on_started: Callable[[SparkSession], None] | None,
    metrics: PipelineMetrics,
    starts: ContinuousStarts,
) -> None:
    listener = ProgressListener(metrics)
    session.streams.addListener(listener)
    streams = restarted_streams(session, config, metrics, starts)

    def tell() -> None:
        _log.info("pipeline runs", tables=str(config.tables_dir), streams=[stream.name for stream in streams])
        if on_started is not None:
            on_started(session)

    try:
        run_streams(config, streams, stop, tell)
    finally:
        session.streams.removeListener(listener)


def restarted_streams(
    session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics, starts: ContinuousStarts
) -> list[RestartedStream]:
    """Every stream under one name for metrics and logs: that of its topic's table, or of what it makes."""
    names = {topic: table.name for topic, table in TABLE_OF_TOPIC.items()}
    return [
        RestartedStream(names.get(key, key), partial(starts.start, key, start), config, metrics)
        for key, start in _starters(session, config, metrics).items()
    ]


def _starters(
    session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics
) -> dict[str, Callable[[], Running]]:
    return {
        DECISIONS: lambda: start_decisions(session, config, metrics),
        MEMBERSHIP: lambda: start_records(session, config, MEMBERSHIP, metrics),
        LOAD_REPORTS: lambda: start_load(session, config, metrics),
        HEARTBEATS: lambda: start_records(session, config, HEARTBEATS, metrics),
        INTENTS: lambda: start_records(session, config, INTENTS, metrics),
        DEAD_LETTERS: lambda: start_records(session, config, DEAD_LETTERS, metrics),
        CHANGES: lambda: start_changes(config, metrics),
        LOAD_HISTORY: lambda: start_load_history(session, config, metrics),
    }

"""The application: all streams of a cluster in one Spark session, restarted after failures, until it is stopped."""

import re
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog
from pyspark.sql import SparkSession

from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP, KafkaConfig
from controlplane.errors import (
    ConfigurationError,
    ControlPlaneError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
    NotAllowedError,
    PrerequisiteError,
    UnsupportedFeatureLevelError,
)
from streaming.config import PipelineConfig
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.created_tables import create_missing, is_empty
from streaming.jobs.changes import CHANGES, ChangesStream
from streaming.jobs.decision_log import start_decisions
from streaming.jobs.history import start_history
from streaming.jobs.load import start_load
from streaming.maintenance import maintain
from streaming.metrics import PipelineMetrics, ProgressListener
from streaming.session import build_session
from streaming.warehouse import claim

_log = structlog.get_logger(__name__)

_WATCH_INTERVAL_S = 0.5
_LONGEST_WAIT_S = 30.0
_QUIET_AFTER_S = 300.0
"""A stream that ran this long after a failure has recovered: its failures are counted from zero again."""

_STOPPING_ERRORS: Mapping[str, type[ControlPlaneError]] = {
    kind.__name__: kind for kind in (UnsupportedFeatureLevelError, LogContinuityError, InvariantViolationError)
}
"""Errors that another start would meet again. Spark reports them as text."""


def run(
    config: PipelineConfig,
    stop: threading.Event,
    on_started: Callable[[SparkSession], None] | None = None,
    metrics: PipelineMetrics | None = None,
) -> None:
    """Run every stream until ``stop`` is set; blocks. A restart resumes at the checkpoints.

    Args:
        config: the settings.
        stop: ends the pipeline. A running batch is aborted, and repeated by the next start.
        on_started: called once when all streams run, with the session.
        metrics: the metrics to update; None registers a set with Prometheus' default registry.

    Raises:
        PrerequisiteError: Spark does not start, the tables are those of another version or cluster, or a checkpoint
            is missing.
        LogUnavailableError: a stream failed too often in a row; the message contains its last failure.
        LogContinuityError: the decision log has a gap or was recreated.
        UnsupportedFeatureLevelError: a newer version wrote a decision.
        ConfigurationError: Kafka refuses the login, or does not allow what the pipeline needs.
    """
    claim(config.warehouse_dir, config.cluster.name)
    session = build_session(f"controlplane-pipeline-{config.cluster.name}", config.spark)
    try:
        run_in(session, config, stop, on_started, metrics or PipelineMetrics())
    finally:
        session.stop()


def run_in(
    session: SparkSession,
    config: PipelineConfig,
    stop: threading.Event,
    on_started: Callable[[SparkSession], None] | None,
    metrics: PipelineMetrics,
) -> None:
    """As :func:`run`, in a session that the caller creates and ends."""
    create_missing(config.warehouse_dir, config.bucket_count)
    refuse_lost_checkpoints(config)
    listener = ProgressListener(metrics)
    session.streams.addListener(listener)
    streams = [_Stream(name, start) for name, start in _starters(session, config, metrics).items()]
    try:
        for stream in streams:
            stream.start()
        _log.info("pipeline runs", tables=str(config.warehouse_dir), streams=[stream.name for stream in streams])
        if on_started is not None:
            on_started(session)
        _watch(session, config, streams, stop, metrics)
    finally:
        for stream in streams:
            stream.stop()
        session.streams.removeListener(listener)


def refuse_lost_checkpoints(config: PipelineConfig) -> None:
    """Refuse to read a topic from its beginning into a table that already has its records.

    Raises:
        PrerequisiteError: a table has rows and its stream has no checkpoint.
    """
    for table in TABLE_OF_TOPIC.values():
        checkpoint = config.checkpoint_dir(table.name)
        if not (checkpoint / "metadata").exists() and not is_empty(config.warehouse_dir, table):
            message = (
                f"the table {table.name} in {config.warehouse_dir} holds rows and its checkpoint {checkpoint} is gone: "
                "going on would add them a second time. Restore it, or move the folder away to start afresh"
            )
            raise PrerequisiteError(message)


class _Running(Protocol):
    """A query of Spark, or what is seen as one from outside."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""

    def exception(self) -> Exception | None:
        """Why it failed."""

    def stop(self) -> None:
        """End it."""


def _starters(
    session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics
) -> dict[str, Callable[[], _Running]]:
    return {
        DECISIONS: lambda: start_decisions(session, config, metrics),
        MEMBERSHIP: lambda: start_history(session, config, MEMBERSHIP),
        LOAD_REPORTS: lambda: start_load(session, config, metrics),
        HEARTBEATS: lambda: start_history(session, config, HEARTBEATS),
        INTENTS: lambda: start_history(session, config, INTENTS),
        DEAD_LETTERS: lambda: start_history(session, config, DEAD_LETTERS),
        CHANGES: lambda: ChangesStream(config, metrics),
    }


@dataclass(slots=True)
class _Stream:
    """One stream and its recent failures.

    Attributes:
        name: its topic, or what it makes.
        starter: starts it where it was.
        query: the running query, once started.
        failures: in a row.
        start_again_at_s: monotonic time before which it is not started again; None while it runs.
        started_at_s: monotonic time of the last start.
    """

    name: str
    starter: Callable[[], _Running]
    query: _Running | None = None
    failures: int = 0
    start_again_at_s: float | None = None
    started_at_s: float = 0.0

    def start(self) -> None:
        """Start it where it was."""
        self.query = self.starter()
        self.started_at_s = time.monotonic()
        self.start_again_at_s = None

    def stop(self) -> None:
        """Stop it if it runs. The next start goes on where it was."""
        if self.query is not None and self.query.isActive:
            self.query.stop()

    def failure(self) -> str | None:
        """The reason why it ended; None while it runs or waits."""
        if self.query is None or self.query.isActive or self.start_again_at_s is not None:
            return None
        error = self.query.exception()
        if error is None:
            return "it ended without an error"
        return _text_of(error)


def _text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _watch(
    session: SparkSession,
    config: PipelineConfig,
    streams: list[_Stream],
    stop: threading.Event,
    metrics: PipelineMetrics,
) -> None:
    next_maintenance_s = time.monotonic() + config.maintenance_interval_ms / 1_000
    while not stop.wait(_WATCH_INTERVAL_S):
        for stream in streams:
            _attend(stream, config, metrics)
        if time.monotonic() >= next_maintenance_s:
            maintain(session, config.warehouse_dir, keep_days=config.keep_days)
            next_maintenance_s = time.monotonic() + config.maintenance_interval_ms / 1_000


def _attend(stream: _Stream, config: PipelineConfig, metrics: PipelineMetrics) -> None:
    """Start a failed stream again, after a wait that doubles each time.

    Spark 4.1 always fails once after a crash: it repeats the interrupted batch, commits it, and then fails on the
    metrics of its Kafka source (SPARK-55271). The next start continues after that batch.
    """
    now_s = time.monotonic()
    if stream.start_again_at_s is not None:
        if now_s >= stream.start_again_at_s:
            metrics.stream_restarts.labels(stream.name).inc()
            try:
                stream.start()
            except Exception as error:  # noqa: BLE001 - what it opens may be away: the next turn tries again
                _wait_for_next_start(stream, _text_of(error), config)
        return
    failure = stream.failure()
    if failure is not None:
        _wait_for_next_start(stream, failure, config)


def _wait_for_next_start(stream: _Stream, failure: str, config: PipelineConfig) -> None:
    """Let a failed stream be started again later.

    Raises:
        ControlPlaneError: another start would meet the same error, or it has failed too often in a row.
    """
    now_s = time.monotonic()
    stopping = stopping_error(failure, config.kafka, f"what the stream of {stream.name} reads")
    if stopping is not None:
        raise stopping
    if now_s - stream.started_at_s > _QUIET_AFTER_S:
        stream.failures = 0
    stream.failures += 1
    if stream.failures > config.restart_limit:
        message = f"the stream of {stream.name} failed {stream.failures} times in a row, last with: {failure:.2000}"
        raise LogUnavailableError(message)
    wait_s = min(2.0 ** (stream.failures - 1), _LONGEST_WAIT_S)
    stream.start_again_at_s = now_s + wait_s
    _log.warning("stream failed and is started again", stream=stream.name, wait_s=wait_s, failure=failure)


def stopping_error(failure: str, kafka: KafkaConfig, read: str = "a topic") -> ControlPlaneError | None:
    """The error in the text of a failed stream after which it must not be started again; None if there is none.

    ``read`` describes what the stream reads, because Kafka's admin client does not name the topic that it was refused.
    """
    code = "TopicAuthorizationException"
    if code in failure:
        named = re.search(rf"{code}: .*topics?: \[(?P<topics>[^\]]+)\]", failure)
        what = f"topic {named['topics']}" if named else read
        return NotAllowedError(kafka.principal, "use", what, code)
    refused = re.search(r"(?:Sasl|Ssl)AuthenticationException: (?P<message>[^\n]+)", failure)
    if refused:
        return ConfigurationError(
            f"Kafka refuses the login of {kafka.principal}: {refused['message']}; check user, password, mechanism and "
            "certificates in the security settings"
        )
    for name, kind in _STOPPING_ERRORS.items():
        found = re.search(rf"{name}: (?P<message>[^\n]+)", failure)
        if found:
            return kind(found["message"])
    return None

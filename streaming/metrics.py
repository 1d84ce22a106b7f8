"""The pipeline's Prometheus metrics, listed in ``docs/reference/metrics.md``: what Spark reports, and streams count."""

from datetime import datetime

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

_BATCH_BUCKETS_S = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


class PipelineMetrics:
    """One set of metrics for the pipeline of a process."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        """Register the metrics; tests pass a registry of their own."""
        self.batch_seconds = Histogram(
            "controlplane_pipeline_batch_seconds",
            "Time that a batch took, by stream",
            ["stream"],
            buckets=_BATCH_BUCKETS_S,
            registry=registry,
        )
        self.records = Counter(
            "controlplane_pipeline_records", "Records read, by stream", ["stream"], registry=registry
        )
        self.last_batch_time = Gauge(
            "controlplane_pipeline_last_batch_timestamp_seconds",
            "When the newest batch with records began, by stream (seconds since 1970); there from a stream's first "
            "such batch after a start",
            ["stream"],
            registry=registry,
        )
        self.behind = Gauge(
            "controlplane_pipeline_offsets_behind",
            "Offsets of one partition that Kafka had and the newest batch did not reach, the most of any partition, by "
            "stream; there from a stream's first batch after a start. It does not grow while a stream stands still",
            ["stream"],
            registry=registry,
        )
        self.missing = Gauge(
            "controlplane_pipeline_missing_offsets",
            "Offsets that are recorded in the table gaps: Kafka no longer had them, by stream",
            ["stream"],
            registry=registry,
        )
        self.passed_over = Counter(
            "controlplane_pipeline_passed_over_records",
            "Unusable and foreign records, by stream: they stand in dead_letters alone, those of decisions in no table",
            ["stream"],
            registry=registry,
        )
        self.stream_restarts = Counter(
            "controlplane_pipeline_stream_restarts",
            "Streams started again after a failure, by stream; 0 from the start on",
            ["stream"],
            registry=registry,
        )
        self._register_of_loads(registry)

    def _register_of_loads(self, registry: CollectorRegistry) -> None:
        """What the stream of load reports tells."""
        self.clock_ahead = Gauge(
            "controlplane_pipeline_clock_ahead_ms",
            "How far the newest records are dated ahead of the pipeline's clock, the most of any partition, by stream; "
            "0 if none is. Above a minute their times are not waited for, and a broker's clock, or the pipeline's, is "
            "wrong",
            ["stream"],
            registry=registry,
        )
        self.dead_letters = Counter(
            "controlplane_pipeline_dead_letters", "Load reports refused, by reason", ["reason"], registry=registry
        )
        self.implausible_figures = Counter(
            "controlplane_pipeline_implausible_figures",
            "Figures of load reports that cannot be true and were passed over, by figure",
            ["figure"],
            registry=registry,
        )
        self.candidates = Counter(
            "controlplane_pipeline_candidates", "Candidates produced, by action", ["action"], registry=registry
        )


class ProgressListener(StreamingQueryListener):
    """Turns Spark's progress reports into metrics."""

    def __init__(self, metrics: PipelineMetrics) -> None:
        """Feed these metrics."""
        self._metrics = metrics

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to count."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Count a batch."""
        self.record(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to count."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Count nothing: the code that started the stream sees that it ended, and why."""

    def record(self, progress: StreamingQueryProgress) -> None:
        """Count one batch of a stream."""
        stream = progress.name or "unnamed"
        metrics = self._metrics
        lags = [source.metrics.get("maxOffsetsBehindLatest") for source in progress.sources]
        for lag in lags:
            if lag is not None:
                metrics.behind.labels(stream).set(float(lag))
        if not progress.numInputRows:
            return
        metrics.batch_seconds.labels(stream).observe(progress.batchDuration / 1_000)
        metrics.records.labels(stream).inc(progress.numInputRows)
        began = datetime.fromisoformat(progress.timestamp)
        metrics.last_batch_time.labels(stream).set(began.timestamp())

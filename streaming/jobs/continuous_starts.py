"""Before a stream starts, first or again: what it has not read is compared with what Kafka still has."""

import time
from collections.abc import Callable

import structlog

from controlplane.errors import LogUnavailableError
from streaming.config import PipelineConfig
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.gaps import GapsTable, KeptOffsets, go_on
from streaming.jobs.restarts import Running
from streaming.metrics import PipelineMetrics

_log = structlog.get_logger(__name__)


class ContinuousStarts:
    """Starts streams that find in Kafka all they have not read. A gap is accepted at a stream's first start alone.

    Args:
        config: the pipeline's settings.
        kept: asks Kafka what it has.
        metrics: tell what is missing in the tables.
        accepts_gap: whether a gap may be accepted at all.
    """

    def __init__(
        self, config: PipelineConfig, kept: KeptOffsets, metrics: PipelineMetrics, *, accepts_gap: bool
    ) -> None:
        """Nothing is asked yet."""
        self._config = config
        self._kept = kept
        self._metrics = metrics
        self._accepts_gap = accepts_gap
        self._started: set[str] = set()

    def start(self, name: str, starter: Callable[[], Running]) -> Running:
        """Start a stream by its name: its topic, or what it makes; only topics are compared with Kafka.

        Raises:
            LogContinuityError: records are missing, or the topic was recreated.
            PrerequisiteError: its checkpoint is damaged.
            LogUnavailableError: Kafka does not answer at its first start.
        """
        if name in TABLE_OF_TOPIC:
            self._go_on(name)
        return starter()

    def _go_on(self, topic: str) -> None:
        accepts_gap = self._accepts_gap and topic not in self._started
        now_ms = time.time_ns() // 1_000_000
        try:
            go_on(self._config, topic, self._kept(topic), now_ms, accepts_gap=accepts_gap)
        except LogUnavailableError:
            if topic not in self._started:
                raise
            # Spark asks Kafka for longer, and passes no loss either.
            _log.warning("whether Kafka has all that was not read is unknown: it does not answer", topic=topic)
        self._started.add(topic)
        missing = sum(len(gap.offsets) for gap in GapsTable(self._config.warehouse_dir).recorded(topic))
        self._metrics.missing.labels(TABLE_OF_TOPIC[topic].name).set(missing)

"""Before a stream starts, first or again: what it has not read is compared with what Kafka still has."""

import time
from collections.abc import Callable

import structlog

from controlplane.errors import LogUnavailableError
from streaming.config import PipelineConfig
from streaming.continuity.gaps import GapsTable, KeptOffsets, TopicIds, check_continuity
from streaming.contracts.records import TABLE_OF_TOPIC
from streaming.jobs.restarts import Running
from streaming.metrics import PipelineMetrics

_log = structlog.get_logger(__name__)


class ContinuousStarts:
    """Compares every topic before the pipeline starts, and a stream's topic again before each start of the stream.

    Args:
        config: the pipeline's settings.
        kept: asks Kafka what it has.
        topic_ids: asks Kafka for the ids of topics.
        metrics: tell what is missing in the tables.
    """

    def __init__(
        self, config: PipelineConfig, kept: KeptOffsets, topic_ids: TopicIds, metrics: PipelineMetrics
    ) -> None:
        """Nothing is asked yet."""
        self._config = config
        self._kept = kept
        self._topic_ids = topic_ids
        self._metrics = metrics

    def prepare(self, *, accepts_gap: bool) -> None:
        """Compare all topics, before Spark takes its time to start.

        Args:
            accepts_gap: whether gaps are recorded and passed now. Those that are found later stop the stream.

        Raises:
            LogContinuityError: records are missing, or a topic was recreated.
            PrerequisiteError: a checkpoint is damaged, or a topic is missing.
            ConfigurationError: Kafka refuses the login, or does not allow the question.
            LogUnavailableError: Kafka does not answer.
            RetryableError: nor does the checkpoints' storage.
            FencedError: another process has recorded a gap at the same time.
            DeltaError, OSError: the storage fails while a gap is recorded, a checkpoint moved behind it, or the id of a
                topic noted.
        """
        for topic, table in TABLE_OF_TOPIC.items():
            self._compare(topic, accepts_gap=accepts_gap)
            missing = sum(len(gap.offsets) for gap in GapsTable(self._config.tables_dir).recorded(topic))
            self._metrics.missing.labels(table.name).set(missing)

    def start(self, name: str, starter: Callable[[], Running]) -> Running:
        """Start a stream by its name: its topic, or what it makes; only topics are compared with Kafka.

        Raises:
            LogContinuityError: records are missing, or the topic was recreated.
            PrerequisiteError: its checkpoint is damaged, or the topic is missing.
            ConfigurationError: Kafka refuses the login, or does not allow the question.
            RetryableError: the checkpoint's storage does not answer.
            Exception: the storage fails otherwise, or what the starter raises.
        """
        if name in TABLE_OF_TOPIC:
            try:
                self._compare(name, accepts_gap=False)
            except LogUnavailableError:
                # Spark asks Kafka for longer, and passes no loss either.
                _log.warning("whether Kafka has all that was not read is unknown: it does not answer", topic=name)
        return starter()

    def _compare(self, topic: str, *, accepts_gap: bool) -> None:
        kept, topic_id = self._kept(topic), self._topic_id(topic)
        now_ms = time.time_ns() // 1_000_000
        check_continuity(self._config, topic, kept, now_ms, accepts_gap=accepts_gap, topic_id=topic_id)

    def _topic_id(self, topic: str) -> str | None:
        """Kafka's id of a topic. A dead broker, on which only this question depends, keeps nothing from starting."""
        try:
            return self._topic_ids(topic)
        except LogUnavailableError as error:
            _log.warning("whether the topic was made again is unknown", topic=topic, why=str(error))
            return None

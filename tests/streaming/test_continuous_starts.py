"""What happens before a stream starts, first and again. Kafka's answer is an argument, and nothing is read."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.config import DECISIONS, HEARTBEATS, ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError, LogUnavailableError
from streaming.checkpoints import make_checkpoint
from streaming.config import PipelineConfig, SparkConfig
from streaming.contracts.records import HEARTBEATS_TABLE
from streaming.jobs.changes import CHANGES
from streaming.jobs.continuous_starts import ContinuousStarts
from streaming.metrics import PipelineMetrics
from tests.streaming.test_restarts import Query, Starts


class Kafka:
    """Has offsets of one partition of each topic, or does not answer."""

    def __init__(self) -> None:
        self.kept = range(8, 20)
        self.is_away = False
        self.asked: list[str] = []

    def __call__(self, topic: str) -> dict[int, range]:
        """What it has."""
        self.asked.append(topic)
        if self.is_away:
            raise LogUnavailableError("no answer")
        return {0: self.kept}


@pytest.fixture
def kafka() -> Kafka:
    """It answers."""
    return Kafka()


@pytest.fixture
def config(warehouse_dir: Path) -> PipelineConfig:
    """Heartbeats are read up to offset 5, decisions not at all."""
    made = PipelineConfig(ClusterConfig("c"), KafkaConfig("nowhere:1"), warehouse_dir, SparkConfig(jars=()))
    make_checkpoint(made.checkpoint_dir(HEARTBEATS_TABLE.name), made.cluster.topic(HEARTBEATS), {0: 5})
    return made


def test_a_gap_is_accepted_at_the_first_start_alone(config: PipelineConfig, kafka: Kafka) -> None:
    """A stream that fails later, because Kafka has lost more, is not started again; metrics tell what is missing."""
    registry = CollectorRegistry()
    starts = ContinuousStarts(config, kafka, PipelineMetrics(registry), accepts_gap=True)
    starter = Starts()
    for name in (HEARTBEATS, DECISIONS, HEARTBEATS):
        assert type(starts.start(name, starter)) is Query
    missing = {
        name: registry.get_sample_value("controlplane_pipeline_missing_offsets", {"stream": name})
        for name in (HEARTBEATS, DECISIONS)
    }
    assert missing == {HEARTBEATS: 3, DECISIONS: 0}
    kafka.kept = range(9, 20)
    with pytest.raises(LogContinuityError, match=r"heartbeats\[0\]@8 to 8"):
        starts.start(HEARTBEATS, starter)
    assert len(starter.made) == 3


def test_without_consent_no_stream_starts_behind_a_gap(config: PipelineConfig, kafka: Kafka) -> None:
    """The first start tells it; what reads no topic starts without a question."""
    starts = ContinuousStarts(config, kafka, PipelineMetrics(CollectorRegistry()), accepts_gap=False)
    with pytest.raises(LogContinuityError, match="--accept-gap"):
        starts.start(HEARTBEATS, Starts())
    starts.start(CHANGES, Starts())
    assert kafka.asked == [HEARTBEATS]


def test_kafka_away_is_left_to_spark_where_the_stream_ran_before(config: PipelineConfig, kafka: Kafka) -> None:
    """It waits for longer; a first start fails at once."""
    kafka.kept, kafka.is_away = range(3, 20), True
    starts = ContinuousStarts(config, kafka, PipelineMetrics(CollectorRegistry()), accepts_gap=False)
    starter = Starts()
    with pytest.raises(LogUnavailableError):
        starts.start(HEARTBEATS, starter)
    kafka.is_away = False
    starts.start(HEARTBEATS, starter)
    kafka.is_away = True
    with capture_logs() as lines:
        starts.start(HEARTBEATS, starter)
    assert [(line["log_level"], line["topic"]) for line in lines] == [("warning", HEARTBEATS)]
    assert len(starter.made) == 2

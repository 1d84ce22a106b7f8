"""What happens before a stream starts, first and again. Kafka's answer is an argument, and nothing is read."""

from pathlib import Path
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP, ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError, LogUnavailableError
from streaming.config import PipelineConfig, SparkConfig
from streaming.continuity.checkpoints import make_checkpoint, stored_topic_id
from streaming.contracts.records import HEARTBEATS_TABLE, TABLE_OF_TOPIC
from streaming.jobs.changes import CHANGES
from streaming.jobs.continuous_starts import ContinuousStarts
from streaming.jobs.load_history import LOAD_HISTORY
from streaming.jobs.pipeline import restarted_streams
from streaming.metrics import PipelineMetrics
from tests.helpers.local_paths import local
from tests.streaming.jobs.test_restarts import Query, Starts


class Kafka:
    """Has offsets of one partition of each topic, or does not answer."""

    def __init__(self) -> None:
        self.kept = range(8, 20)
        self.is_away = False
        self.topic_id: str | None = "first"
        self.tells_ids = True
        self.asked: list[str] = []

    def __call__(self, topic: str) -> dict[int, range]:
        """What it has."""
        self.asked.append(topic)
        if self.is_away:
            raise LogUnavailableError("no answer")
        return {0: self.kept}

    def id_of(self, _topic: str) -> str | None:
        """The id of every topic, until it is made again; None: it gives them none."""
        if not self.tells_ids:
            raise LogUnavailableError("no answer in time")
        return self.topic_id


@pytest.fixture
def kafka() -> Kafka:
    """It answers."""
    return Kafka()


@pytest.fixture
def config(tables_dir: Path) -> PipelineConfig:
    """Heartbeats are read up to offset 5, decisions not at all."""
    made = PipelineConfig(ClusterConfig("c"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()))
    make_checkpoint(Path(str(made.checkpoint_dir(HEARTBEATS_TABLE.name))), made.cluster.topic(HEARTBEATS), {0: 5})
    return made


@pytest.fixture
def registry() -> CollectorRegistry:
    """Of this test alone."""
    return CollectorRegistry()


@pytest.fixture
def starts(config: PipelineConfig, kafka: Kafka, registry: CollectorRegistry) -> ContinuousStarts:
    """The starts of that pipeline."""
    return ContinuousStarts(config, kafka, kafka.id_of, PipelineMetrics(registry))


def test_a_gap_is_accepted_before_all_streams_start_and_not_later(
    starts: ContinuousStarts, kafka: Kafka, registry: CollectorRegistry
) -> None:
    """A stream that fails later, because Kafka has lost more, is not started again; metrics tell what is missing."""
    starts.prepare(accepts_gap=True)
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


def test_without_consent_nothing_starts_behind_a_gap(starts: ContinuousStarts, kafka: Kafka) -> None:
    """All topics are asked for; what reads none starts without a question."""
    with pytest.raises(LogContinuityError, match="--accept-gap"):
        starts.prepare(accepts_gap=False)
    kafka.kept = range(5, 20)
    starts.prepare(accepts_gap=False)
    assert set(kafka.asked) == set(TABLE_OF_TOPIC)
    kafka.asked.clear()
    starts.start(CHANGES, Starts())
    assert kafka.asked == []


def test_a_topic_that_was_made_again_and_has_outgrown_the_former_one_is_refused(
    starts: ContinuousStarts, kafka: Kafka
) -> None:
    """Its offsets look like those that follow; the first start of this version notes which topic it has read."""
    kafka.kept = range(5, 20)
    starts.prepare(accepts_gap=False)
    kafka.topic_id = "second"
    for accepts_gap in (False, True):
        with pytest.raises(LogContinuityError, match=r"heartbeats has the id second in Kafka, .* has read first"):
            starts.prepare(accepts_gap=accepts_gap)
    starter = Starts()
    with pytest.raises(LogContinuityError, match="deleted and made again"):
        starts.start(HEARTBEATS, starter)
    assert not starter.made
    starts.start(DECISIONS, starter)  # it has no checkpoint
    kafka.topic_id = "first"
    starts.prepare(accepts_gap=False)


def test_any_topic_continues_one_of_which_nothing_was_read(
    starts: ContinuousStarts, config: PipelineConfig, kafka: Kafka
) -> None:
    """Its stream has run, and the topic was empty."""
    kafka.kept = range(5, 20)
    folder = local(config.checkpoint_dir(MEMBERSHIP))
    make_checkpoint(folder, config.cluster.topic(MEMBERSHIP), {0: 0}, "former")
    with pytest.raises(LogContinuityError, match=r"membership\[0\]@0 to 4"):
        starts.start(MEMBERSHIP, Starts())
    kafka.kept = range(20)
    starts.start(MEMBERSHIP, Starts())
    assert stored_topic_id(folder) == "first"


def test_an_unknown_id_keeps_nothing_from_starting(starts: ContinuousStarts, kafka: Kafka) -> None:
    """The broker that is asked for it may be dead, or give none; what was noted before is kept."""
    kafka.kept = range(5, 20)
    starts.prepare(accepts_gap=False)
    kafka.tells_ids = False
    with capture_logs() as lines:
        starts.start(HEARTBEATS, Starts())
    assert [(line["log_level"], line["why"]) for line in lines] == [("warning", "no answer in time")]
    kafka.tells_ids, kafka.topic_id = True, None
    starts.start(HEARTBEATS, Starts())
    kafka.topic_id = "second"
    with pytest.raises(LogContinuityError, match="has read first"):
        starts.start(HEARTBEATS, Starts())


def test_kafka_away_is_left_to_spark_where_a_stream_starts(starts: ContinuousStarts, kafka: Kafka) -> None:
    """It waits for longer; before all streams it is told at once."""
    kafka.is_away = True
    with pytest.raises(LogUnavailableError):
        starts.prepare(accepts_gap=False)
    starter = Starts()
    with capture_logs() as lines:
        starts.start(HEARTBEATS, starter)
    assert [(line["log_level"], line["topic"]) for line in lines] == [("warning", HEARTBEATS)]
    assert len(starter.made) == 1


def test_a_stream_has_one_name_in_all_metrics_and_logs(starts: ContinuousStarts, config: PipelineConfig) -> None:
    """A rule that joins restarts with batches would match nothing where one has a hyphen."""
    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry)
    no_session = cast("SparkSession", None)  # none is asked for before a stream starts
    streams = restarted_streams(no_session, config, metrics, starts)
    names = {table.name for table in TABLE_OF_TOPIC.values()} | {CHANGES, LOAD_HISTORY}
    assert {stream.name for stream in streams} == names
    restarts = {
        sample.labels["stream"]
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "controlplane_pipeline_stream_restarts_total"
    }
    assert restarts == names

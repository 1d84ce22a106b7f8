"""The thread that follows the decisions, as the pipeline sees it: it runs, it counts, it fails, it is stopped."""

import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError
from streaming.changes.follower import APP_ID
from streaming.config import PipelineConfig, SparkConfig
from streaming.contracts.changes import INTENT_ANSWERS_TABLE, SLOT_CHANGES_TABLE
from streaming.jobs.changes import start_changes
from streaming.jobs.failures import stopping_error
from streaming.metrics import PipelineMetrics
from streaming.tables.created_tables import create_missing
from streaming.tables.table_writer import TableWriter
from tests.helpers.decision_table import DecisionTable
from tests.helpers.eventful import eventful_decisions
from tests.helpers.polling import poll_until

DECISIONS = eventful_decisions()


@pytest.fixture
def config(tmp_path: Path) -> PipelineConfig:
    """Settings of a pipeline with empty tables."""
    create_missing(tmp_path, bucket_count=2)
    return PipelineConfig(
        cluster=ClusterConfig("test"),
        kafka=KafkaConfig("nowhere:1"),
        tables_dir=tmp_path,
        spark=SparkConfig(jars=()),
        trigger_interval_ms=20,
    )


def test_it_follows_and_counts(config: PipelineConfig) -> None:
    """What comes while it runs is written, and stopping it leaves it ended without an error."""
    table = DecisionTable(config.tables_dir, DECISIONS)
    registry = CollectorRegistry()
    stream = start_changes(config, PipelineMetrics(registry))
    for count in (3, 1, len(DECISIONS)):
        table.add(count)
        written = DECISIONS[table.written - 1].seq
        poll_until(lambda: TableWriter(config.tables_dir, SLOT_CHANGES_TABLE, APP_ID).written_version is not None)
        name, labels = "controlplane_pipeline_records_total", {"stream": "changes"}
        poll_until(lambda: registry.get_sample_value(name, labels) == written)  # noqa: B023 - polled at once
    seen = [stream.isActive]
    stream.stop()
    assert [*seen, stream.isActive] == [True, False]
    assert stream.exception() is None
    assert TableWriter(config.tables_dir, INTENT_ANSWERS_TABLE, APP_ID).rows().num_rows > 0
    batches = registry.get_sample_value("controlplane_pipeline_batch_seconds_count", {"stream": "changes"})
    assert batches is not None
    assert batches >= 3
    began_s = registry.get_sample_value("controlplane_pipeline_last_batch_timestamp_seconds", {"stream": "changes"})
    assert began_s == pytest.approx(time.time(), abs=300)


def test_a_gap_ends_it_and_the_pipeline(config: PipelineConfig) -> None:
    """Another start would meet the same gap."""
    table = DecisionTable(config.tables_dir, DECISIONS)
    table.add(2)
    table.written = 4
    table.add(1)
    stream = start_changes(config, PipelineMetrics(CollectorRegistry()))
    poll_until(lambda: not stream.isActive)
    error = stream.exception()
    assert isinstance(error, LogContinuityError)
    assert isinstance(stopping_error(f"LogContinuityError: {error}", config.kafka), LogContinuityError)

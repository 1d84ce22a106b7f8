"""The thread that follows the load reports, as the pipeline sees it: it takes its steps, and is stopped in one."""

import random
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from controlplane.config import ClusterConfig, KafkaConfig
from streaming.config import PipelineConfig, SparkConfig
from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.jobs.followers import FollowerStream, Step
from streaming.jobs.load_history import LOAD_HISTORY, start_load_history, until_next_step_ms
from streaming.metrics import PipelineMetrics
from streaming.tables.stored_table import StoredTable
from tests.helpers.polling import poll_until
from tests.helpers.report_table import ReportTable, random_reports


@pytest.fixture
def config(tables_dir: Path) -> PipelineConfig:
    """Settings of a pipeline with empty tables."""
    return PipelineConfig(ClusterConfig("test"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()))


@pytest.mark.parametrize(
    ("now_ms", "wait_ms"), [(630_000, 600_000), (629_999, 1), (630_001, 599_999), (600_000, 30_000), (1_229_000, 1_000)]
)
def test_steps_follow_the_ends_of_windows(now_ms: int, wait_ms: int) -> None:
    """By half a minute."""
    assert until_next_step_ms(now_ms, 600_000) == wait_ms


def test_it_writes_what_is_there_and_waits(
    spark: SparkSession, config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are taken at once as long as there is a past to be made up for."""
    monkeypatch.setattr("streaming.load_history.follower._STEP_BYTES", 1)
    reports = random_reports(random.Random(5), 60, config.history_window_ms)
    table = ReportTable(config.tables_dir)
    for start in range(0, len(reports), 6):
        table.add(reports[start : start + 6])
    registry = CollectorRegistry()
    stream = start_load_history(spark, config, PipelineMetrics(registry))
    name, labels = "controlplane_pipeline_records_total", {"stream": LOAD_HISTORY}
    poll_until(lambda: registry.get_sample_value(name, labels) == len(reports), deadline_s=120)
    seen = [stream.isActive]
    stream.stop()
    assert [*seen, stream.isActive] == [True, False]
    assert stream.exception() is None
    assert (registry.get_sample_value("controlplane_pipeline_batch_seconds_count", labels) or 0) > 1
    assert StoredTable(config.tables_dir, BUNDLE_LOAD_HISTORY_TABLE).rows().num_rows > 0


def test_a_step_is_cancelled(
    spark: SparkSession, config: PipelineConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stopping does not wait for the tasks of a step."""
    running = tmp_path / "running"

    def long_step(*_: object) -> object:
        def sleep(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            running.touch()
            time.sleep(600)
            yield from batches

        return spark.range(1).mapInArrow(sleep, "id long").collect()

    monkeypatch.setattr("streaming.load_history.follower.read_heads", long_step)
    ReportTable(config.tables_dir).add(random_reports(random.Random(5), 6, config.history_window_ms))
    stream = start_load_history(spark, config, PipelineMetrics(CollectorRegistry()))
    poll_until(running.exists, deadline_s=120)
    stream.stop()
    assert not stream.isActive
    assert "cancel" in str(stream.exception())


def test_what_a_step_has_not_begun_is_cancelled_when_it_begins() -> None:
    """A step that begins while the stream is stopped may wait for something only then."""
    cancels: list[int] = []
    begun, waiting = threading.Event(), threading.Event()

    def step() -> Step:
        begun.set()
        poll_until(lambda: len(cancels) > 1)
        assert waiting.wait(60)
        return Step(0, wait_s=0.0)

    def cancel() -> None:
        cancels.append(1)
        if len(cancels) > 2:
            waiting.set()

    metrics: Any = PipelineMetrics(CollectorRegistry())
    stream = FollowerStream("steps", metrics, opened=lambda: step, cancel=cancel)
    assert begun.wait(60)
    stream.stop()
    assert (stream.isActive, stream.exception()) == (False, None)

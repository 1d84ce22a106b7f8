"""The streams while the pipeline runs: whatever takes long beside them, they are attended to and end in time."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from controlplane.config import ClusterConfig, KafkaConfig
from streaming.config import PipelineConfig, SparkConfig
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.records import DEAD_LETTERS_TABLE, DECISIONS_TABLE, MEMBERSHIP_TABLE
from streaming.jobs.running_streams import run_streams
from tests.helpers.membership_rows import add_membership_rows
from tests.helpers.polling import poll_until
from tests.streaming.jobs.test_restarts import Query, Starts, restarted

END_S = 10.0
"""What the pipeline promises: it ends so long after it was told to, and a part of that is Spark's own."""


@pytest.fixture
def config(tables_dir: Path) -> PipelineConfig:
    """Maintenance is due at once, of three tables, in this order: decisions, membership, dead letters."""
    for table in ALL_TABLES:
        if table not in (DECISIONS_TABLE, MEMBERSHIP_TABLE, DEAD_LETTERS_TABLE):
            shutil.rmtree(tables_dir / table.name)
    return PipelineConfig(
        ClusterConfig("c"), KafkaConfig("nowhere:1"), tables_dir, SparkConfig(jars=()), maintenance_interval_ms=1
    )


@contextmanager
def slow_table(tables_dir: Path) -> Iterator[None]:
    """Joining the files of ``membership`` takes as long as the block: one of them is a pipe, which has no writer."""
    for batch_id in range(2):
        add_membership_rows(tables_dir, 1, batch_id)
    place = Path(DeltaTable(tables_dir / MEMBERSHIP_TABLE.name).file_uris()[0])
    place.unlink()
    os.mkfifo(place)

    def end() -> bool:
        os.close(os.open(place, os.O_WRONLY | os.O_NONBLOCK))  # an OSError as long as it is not read
        return True

    try:
        yield
    finally:
        poll_until(end)
        poll_until(lambda: not is_maintained())


def is_maintained() -> bool:
    """Whether a thread does it."""
    return "maintenance" in [thread.name for thread in threading.enumerate()]


@contextmanager
def running(run: Callable[[], None]) -> Iterator[None]:
    """It runs in another thread within the block, and has to end with it."""
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(END_S)
    assert not thread.is_alive()


def test_a_table_that_takes_long_delays_neither_the_end_nor_restarts(config: PipelineConfig) -> None:
    """Nor is a further table begun after the end."""
    stop, starts = threading.Event(), Starts()
    run = partial(run_streams, config, [restarted(starts)], stop, lambda: None)
    with capture_logs() as told, slow_table(Path(str(config.tables_dir))):
        with running(run):
            poll_until(lambda: DECISIONS_TABLE.name in [line.get("table") for line in told])
            starts.made[0].fail(OSError("away"))
            poll_until(lambda: len(starts.made) == 2)
            stop.set()
            began_s = time.monotonic()
        assert time.monotonic() - began_s < END_S / 2, "Spark needs the other half"
        assert is_maintained()
        assert not starts.made[1].isActive
    maintained = [(line["event"], line["table"]) for line in told if "table" in line]
    assert maintained == [
        ("table maintained", DECISIONS_TABLE.name),
        ("maintenance failed and is tried again later", MEMBERSHIP_TABLE.name),
    ]


def test_a_process_that_lives_less_than_the_interval_maintains_its_tables(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or one that is started again every half hour would never remove a file."""
    monkeypatch.setattr("streaming.jobs.running_streams._FIRST_MAINTENANCE_S", 0.01)
    hourly = replace(config, maintenance_interval_ms=3_600_000)
    stop, starts = threading.Event(), Starts()
    with capture_logs() as told, running(partial(run_streams, hourly, [restarted(starts)], stop, lambda: None)):
        poll_until(lambda: DEAD_LETTERS_TABLE.name in [line.get("table") for line in told])
        stop.set()


class Panic(BaseException):
    """As delta-rs raises it: no ``Exception``."""


@pytest.mark.parametrize("error", [ValueError("of no one table"), Panic("of delta-rs")])
def test_what_fails_in_maintenance_ends_the_pipeline(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """What fails for one table is told there; another failure is not lost in a thread that ends."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("streaming.jobs.running_streams.maintain", fail)
    starts, stop = Starts(), threading.Event()
    too_late = threading.Timer(END_S, stop.set)
    too_late.start()
    with pytest.raises(type(error), match=str(error)):
        run_streams(config, [restarted(starts)], stop, lambda: None)
    too_late.cancel()
    assert not stop.is_set()
    assert not starts.made[0].isActive


def test_a_failed_stream_ends_the_maintenance(config: PipelineConfig) -> None:
    """Also of a process that goes on, and lets another pipeline claim the tables."""
    starts = Starts()
    starts.raises = ValueError("no executor")
    with pytest.raises(ValueError, match="no executor"):
        run_streams(config, [restarted(starts)], threading.Event(), lambda: None)
    poll_until(lambda: not is_maintained())


class StoppingStarts(Starts):
    """The pipeline is told to end while one of them waits for Kafka."""

    def __init__(self, stop: threading.Event, at: int) -> None:
        super().__init__()
        self._stop = stop
        self._at = at

    def __call__(self) -> Query:
        """See the super class."""
        made = super().__call__()
        if len(self.made) == self._at:
            self._stop.set()
        return made


@pytest.mark.parametrize("at", [1, 2])
def test_no_stream_is_started_after_the_end(config: PipelineConfig, at: int) -> None:
    """Each start may wait for Kafka for seconds; the first one of a stream, and one after a failure."""
    stop, told = threading.Event(), list[str]()
    first, second = StoppingStarts(stop, at), Starts()

    def fail_both() -> None:
        told.append("started")
        for starts in (first, second):
            starts.made[0].fail(OSError("away"))

    run_streams(config, [restarted(first), restarted(second)], stop, fail_both)
    assert (len(first.made), len(second.made)) == (at, at - 1)
    assert told == ["started"] * (at - 1)

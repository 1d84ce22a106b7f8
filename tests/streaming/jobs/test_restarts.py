"""Streams that fail: started again after waits that grow, until they have failed too often. Time is an argument."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError, LogUnavailableError, PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.jobs.followers import FollowerStream, Step
from streaming.jobs.restarts import RestartedStream, Running
from streaming.metrics import PipelineMetrics
from tests.helpers.polling import poll_until


class Query:
    """What a start returns; a test lets it fail."""

    def __init__(self) -> None:
        self.isActive = True
        self.lastProgress: object | None = None
        self.error: Exception | None = None

    def exception(self) -> Exception | None:
        """See the protocol."""
        return self.error

    def stop(self) -> None:
        """See the protocol."""
        self.isActive = False

    def fail(self, error: Exception | None) -> None:
        """End, with a reason or without."""
        self.isActive, self.error = False, error


class Starts:
    """Starts of one stream."""

    def __init__(self) -> None:
        self.made: list[Query] = []
        self.raises: Exception | None = None

    def __call__(self) -> Query:
        """A new query, unless starts are to fail."""
        if self.raises is not None:
            raise self.raises
        self.made.append(Query())
        return self.made[-1]


@pytest.fixture
def starts() -> Starts:
    """Starts that succeed."""
    return Starts()


@pytest.fixture
def stream(starts: Starts) -> RestartedStream:
    """A stream that was started, and may fail three times in a row."""
    return started(starts)


def started(starter: Callable[[], Running]) -> RestartedStream:
    """The stream of such starts, after the first one."""
    made = restarted(starter)
    made.start()
    return made


def restarted(starter: Callable[[], Running]) -> RestartedStream:
    """The stream of such starts, before the first one."""
    config = PipelineConfig(
        ClusterConfig("c"), KafkaConfig("nowhere:1"), Path("tables"), SparkConfig(jars=()), restart_limit=3
    )
    return RestartedStream("changes", starter, config, PipelineMetrics(CollectorRegistry()))


def test_waits_double(stream: RestartedStream, starts: Starts) -> None:
    """1, 2 and 4 seconds; a fourth failure in a row ends the pipeline with the last reason."""
    now_s = 10.0
    for wait_s in (1.0, 2.0, 4.0):
        starts.made[-1].fail(OSError("disk full"))
        count = len(starts.made)
        for later_s in (0.0, wait_s - 0.1):
            stream.attend(now_s + later_s)
            assert len(starts.made) == count
        stream.attend(now_s + wait_s)
        assert len(starts.made) == count + 1
        now_s += wait_s
    starts.made[-1].fail(OSError("disk full again"))
    with pytest.raises(
        LogUnavailableError, match=r"changes failed 4 times in a row, last with: OSError: disk full again"
    ):
        stream.attend(now_s)


def test_a_start_that_fails_counts_as_a_failure(stream: RestartedStream, starts: Starts) -> None:
    """It ends the pipeline no sooner than a stream that fails, and no later."""
    starts.made[-1].fail(None)
    stream.attend(1_000.0)
    starts.raises = OSError("no executor")
    stream.attend(1_001.0)
    stream.attend(1_002.9)
    stream.attend(1_003.0)
    with pytest.raises(LogUnavailableError, match="no executor"):
        stream.attend(1_007.0)


def test_a_start_that_fails_may_succeed_later(stream: RestartedStream, starts: Starts) -> None:
    """What it opens may be away for a time."""
    starts.made[-1].fail(None)
    stream.attend(0.0)
    starts.raises = OSError("no executor")
    stream.attend(1.0)
    starts.raises = None
    stream.attend(3.0)
    assert len(starts.made) == 2
    stream.stop()
    assert not starts.made[-1].isActive


def test_a_start_that_completes_a_batch_ends_a_row_of_failures(stream: RestartedStream, starts: Starts) -> None:
    """However soon it fails again; starts that fail are in a row although the query before them had completed one."""
    for number in range(10):
        starts.made[-1].lastProgress = "a batch"
        starts.made[-1].fail(OSError("now and then"))
        stream.attend(2.0 * number)
        stream.attend(2.0 * number + 1.0)
    assert len(starts.made) == 11
    starts.made[-1].lastProgress = "a batch"
    starts.made[-1].fail(OSError("now and then"))
    starts.raises = OSError("no executor")
    with pytest.raises(LogUnavailableError, match="4 times in a row, last with: OSError: no executor"):
        attend_for_long(stream)


def test_a_stream_that_needs_long_to_fail_ends_the_pipeline(stream: RestartedStream, starts: Starts) -> None:
    """A batch may run for a quarter of an hour, and then fail each time: time shows no recovery."""

    def fail() -> bool:
        starts.made[-1].fail(OSError("out of memory"))
        return False

    with pytest.raises(LogUnavailableError, match="4 times in a row"):
        attend_for_long(stream, until=fail)
    assert len(starts.made) == 4


@pytest.mark.parametrize("completed_steps", [0, 1])
def test_a_follower_recovers_by_a_step(completed_steps: int) -> None:
    """One that found nothing to do shows it as well."""
    followers: list[FollowerStream] = []

    def start() -> FollowerStream:
        steps = iter([Step(0, wait_s=0.0)] * completed_steps)
        followers.append(FollowerStream("steps", PipelineMetrics(CollectorRegistry()), lambda: lambda: next(steps)))
        return followers[-1]

    stream = started(start)
    if completed_steps:
        attend_for_long(stream, until=lambda: len(followers) > 8)
    else:
        with pytest.raises(LogUnavailableError, match="4 times in a row, last with: StopIteration"):
            attend_for_long(stream)


@pytest.mark.parametrize("fails_from", [0, 1])
def test_a_query_of_spark_recovers_by_a_batch(spark: SparkSession, tmp_path: Path, fails_from: int) -> None:
    """Its first batch fails each time, and is repeated by each start; or each start completes one before it fails."""
    queries: list[StreamingQuery] = []

    def start() -> StreamingQuery:
        completed: list[int] = []

        def batch(_: DataFrame, number: int) -> None:
            if len(completed) == fails_from:
                raise ValueError("no such bucket")
            completed.append(number)

        source = spark.readStream.format("rate").load().writeStream.foreachBatch(batch)
        queries.append(source.option("checkpointLocation", str(tmp_path)).start())
        return queries[-1]

    stream = started(start)
    if fails_from:
        attend_for_long(stream, until=lambda: len(queries) > 5)
        stream.stop()
    else:
        with pytest.raises(LogUnavailableError, match=r"4 times in a row, last with: \S*ValueError: no such bucket"):
            attend_for_long(stream)


def attend_for_long(stream: RestartedStream, until: Callable[[], bool] = lambda: False) -> None:
    """Attend to a stream as often as it takes; ten minutes pass from one time to the next."""
    times_s = itertools.count(0.0, 600.0)

    def attend() -> bool:
        stream.attend(next(times_s))
        return until()

    poll_until(attend, deadline_s=60)


def test_what_another_start_would_meet_again_is_raised(stream: RestartedStream, starts: Starts) -> None:
    """With its own message."""
    starts.made[-1].fail(LogContinuityError("decision 7 is missing"))
    with pytest.raises(LogContinuityError, match="decision 7 is missing"):
        stream.attend(1.0)
    assert len(starts.made) == 1


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("streaming", "do not find the Python package streaming: give spark-submit --archives .*PYTHONPATH="),
        ("streaming.tables", r"have another build of streaming than the driver, without streaming\.tables: give both"),
    ],
)
def test_executors_without_the_package_end_the_pipeline_at_once(
    stream: RestartedStream, starts: Starts, module: str, sentence: str
) -> None:
    """Spark tells it as text, with the trace of a worker; another start would meet it again."""
    trace = f"Traceback (most recent call last):\n  File worker.py\nModuleNotFoundError: No module named {module!r}\n"
    starts.made[-1].fail(RuntimeError(f"Job aborted: Task 0 in stage 1.0 failed 4 times\n{trace}"))
    with pytest.raises(PrerequisiteError, match=f"^Spark's executors {sentence}"):
        stream.attend(1.0)
    assert len(starts.made) == 1


def test_a_module_that_the_driver_lacks_too_is_a_failure_like_others(stream: RestartedStream, starts: Starts) -> None:
    """Nothing that is shipped to executors would help."""
    starts.made[-1].fail(ModuleNotFoundError("No module named 'is_not_there'"))
    stream.attend(1.0)
    stream.attend(2.0)
    assert len(starts.made) == 2

"""Streams that fail: started again after waits that grow, until they have failed too often. Time is an argument."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import LogContinuityError, LogUnavailableError, PrerequisiteError
from streaming.config import PipelineConfig, SparkConfig
from streaming.jobs.restarts import RestartedStream
from streaming.metrics import PipelineMetrics


class Query:
    """What a start returns; a test lets it fail."""

    def __init__(self) -> None:
        self.isActive = True
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
    """A stream that was started at 0 s, and may fail three times in a row."""
    config = PipelineConfig(
        ClusterConfig("c"), KafkaConfig("nowhere:1"), Path("tables"), SparkConfig(jars=()), restart_limit=3
    )
    made = RestartedStream("changes", starts, config, PipelineMetrics(CollectorRegistry()))
    made.start(0.0)
    return made


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


def test_failures_that_are_far_apart_are_not_in_a_row(stream: RestartedStream, starts: Starts) -> None:
    """A stream that ran for five minutes has recovered."""
    for number in range(10):
        starts.made[-1].fail(OSError("now and then"))
        stream.attend(1_000.0 * (number + 1))
        stream.attend(1_000.0 * (number + 1) + 1.0)
    assert len(starts.made) == 11


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

"""What a failed stream says in one line; the texts are Spark's, shortened."""

from pathlib import Path

import pytest

from controlplane.config import KafkaConfig
from controlplane.errors import LogUnavailableError, PrerequisiteError
from streaming.jobs.failures import final_error, words_of

KAFKA, FOLDER = KafkaConfig("kafka:9092"), Path("tables")
_PROXY = "pyspark.errors.exceptions.captured.StreamingQueryException: An exception was raised by the Python Proxy. "
_PROXY += "Return Message: Traceback (most recent call last):\n  File clientserver.py, line 644, in _call_proxy\n"
_QUERY = "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = 1, runId = 2] "


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            f"{_PROXY}OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device\n",
            "the disk of tables is full: make room; docs/how-to/mend-the-pipeline.md has the steps",
        ),
        (
            f"{_QUERY}terminated with exception: x\norg.apache.kafka.common.errors.TimeoutException: Timed out: 1\n",
            "Kafka at kafka:9092 does not answer: Timed out: 1",
        ),
        (
            f"{_QUERY}terminated with exception: They are not available in Kafka any more;\neither they",
            "Kafka no longer has records that were not read",
        ),
        (
            f"{_PROXY}builtins.ValueError: no such bucket\nJVM stacktrace:\n  at a.b",
            "builtins.ValueError: no such bucket",
        ),
        (f"{_QUERY}terminated with exception: no executor SQLSTATE: XXKST\n=== Streaming Query ===", "no executor"),
        (
            f'{_QUERY}terminated with exception: Not: because the return value of "scala.Option.get()" is null',
            "Spark fails once behind the batch that it repeats after a stop or a crash (SPARK-55271); nothing is lost",
        ),
        ("OSError: no such file\nmore", "OSError: no such file"),
        ("x" * 1_000, "x" * 300),
    ],
)
def test_each_failure_is_one_line(failure: str, told: str) -> None:
    """In our words where we have any, and in those of the innermost exception elsewhere."""
    assert words_of(failure, KAFKA, FOLDER) == told


def test_a_full_disk_is_the_users_to_mend() -> None:
    """Everything else may pass by itself: Kafka is away, say."""
    assert type(final_error("m", "x: No space left on device")) is PrerequisiteError
    assert type(final_error("m", "x")) is LogUnavailableError

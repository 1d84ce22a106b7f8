"""What a failed stream says in one line, and after which failures it is not started again; the texts are Spark's."""

import dataclasses
from pathlib import Path

import pytest

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import (
    ConfigurationError,
    InvariantViolationError,
    LogContinuityError,
    LogUnavailableError,
    NotAllowedError,
    PrerequisiteError,
)
from streaming.config import PipelineConfig, SparkConfig
from streaming.jobs.failures import final_error, stopping_error, words_of
from streaming.storage import ObjectPath

CONFIG = PipelineConfig(
    ClusterConfig("c"),
    KafkaConfig("kafka:9092"),
    Path("/data/delta"),
    SparkConfig(jars=(), log_file=Path("/var/log/spark-c.log")),
    checkpoints_dir=Path("/fast/checkpoints"),
)
_MEND = "docs/how-to/mend-the-pipeline.md has the steps"
_PROXY = "pyspark.errors.exceptions.captured.StreamingQueryException: An exception was raised by the Python Proxy. "
_PROXY += "Return Message: Traceback (most recent call last):\n  File clientserver.py, line 644, in _call_proxy\n"
_PLAN = "=== Streaming Query ===\n~WriteToMicroBatchDataSourceV1 ForeachBatchSink, [checkpointLocation=/fast/x]\n"
_NO_SPACE = "No space left on device"
_RUST = "External: Generic LocalFileSystem error"
_ARROW = "\n           \x1b[31m↳\x1b[0m "
_FRAME = '  File "/opt/env/streaming/storage.py", line 99, in write\n    place = folder / name\n'
_QUERY = "pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query [id = 1, runId = 2] "


@pytest.mark.parametrize(
    ("failure", "told"),
    [
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
    assert words_of(failure, CONFIG) == told


@pytest.mark.parametrize(
    ("failure", "folder"),
    [
        (
            f"_internal.DeltaError: {_RUST}: Unable to open file /data/delta/ticks/day=1/a.parquet#1: {_NO_SPACE} (os",
            "/data/delta/ticks/day=1",
        ),
        (
            f"OSError: {_RUST}{_ARROW}Unable to open file /data/my delta/slots/_delta_log/01.json#1{_ARROW}{_NO_SPACE}",
            "/data/my delta/slots/_delta_log",
        ),
        (
            f"OSError: [Errno 28] Failed to open local file '/data/delta/ticks/a'. Detail: [errno 28] {_NO_SPACE}",
            "/data/delta/ticks",
        ),
        (f"{_FRAME}OSError: [Errno 28] {_NO_SPACE}: '/scratch/python/tmpx'", "/scratch/python"),
        (
            f"java.io.FileNotFoundException: /scratch/blockmgr-7f/0c/temp_shuffle_1a ({_NO_SPACE})\n\tat java.base/j",
            "/scratch/blockmgr-7f/0c",
        ),
        (
            f"java.nio.file.FileSystemException: /fast/checkpoints/decisions/offsets/.7.tmp: {_NO_SPACE}",
            "/fast/checkpoints/decisions/offsets",
        ),
    ],
    ids=["rows", "commit", "arrow", "python", "shuffle", "checkpoint"],
)
def test_a_full_disk_is_that_of_the_file_that_the_error_names(failure: str, folder: str) -> None:
    """What is full need not be the tables' disk: Spark's work files or the checkpoints may be on another one."""
    assert words_of(f"{_PROXY}{failure}\n{_PLAN}", CONFIG) == f"the disk of {folder} is full: make room; {_MEND}"


@pytest.mark.parametrize(
    "failure",
    [
        f"_internal.DeltaError: Failed to parse parquet: {_RUST}: Unable to copy data to file: {_NO_SPACE}",
        f"OSError: {_RUST}{_ARROW}Unable to copy data to file{_ARROW}{_NO_SPACE} (os error 28)",
        f"{_FRAME}OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] {_NO_SPACE}",
        f"[SPILL_OUT_OF_MEMORY] Error while calling spill() on org.apache.spark.Sorter@2 : {_NO_SPACE} SQLSTATE: 82003",
        f"org.apache.spark.SparkException: Cannot sort /data/delta/ticks/a.parquet: java.io.IOException: {_NO_SPACE}",
        f"java.io.IOException: {_NO_SPACE}",
    ],
    ids=["rows", "commit", "arrow", "spill", "read", "checkpoint"],
)
def test_where_the_error_names_no_file_all_is_named_that_may_be_on_a_full_disk(failure: str) -> None:
    """Errors of writes name none. What is in an object store is on no disk."""
    told = words_of(f"{_PROXY}{failure}\n{_PLAN}", CONFIG)
    assert told == (
        "a disk is full, and the error does not say which: make room where these are: the tables (/data/delta), the "
        "checkpoints (/fast/checkpoints), Spark's log (/var/log/spark-c.log), Spark's work files (spark.local.dir and "
        f"java.io.tmpdir, by default /tmp, of driver and executors); {_MEND}"
    )
    elsewhere = dataclasses.replace(CONFIG, tables_dir=ObjectPath("bucket", "delta"), spark=SparkConfig(jars=()))
    assert ": the checkpoints (/fast/checkpoints), Spark's work files" in words_of(failure, elsewhere)


def test_a_full_disk_is_the_users_to_mend() -> None:
    """Everything else may pass by itself: Kafka is away, say."""
    assert type(final_error("m", f"x: {_NO_SPACE}")) is PrerequisiteError
    assert type(final_error("m", "x")) is LogUnavailableError


def test_errors_that_forbid_a_restart_are_recognised() -> None:
    """Spark reports a failure as text; what another start cannot heal must stop the pipeline under its own name."""
    text = (
        "[STREAM_FAILED] Query terminated: Traceback (most recent call last):\n  File x\n"
        "controlplane.errors.LogContinuityError: part 1 of 2 stands where part 0 has to\n\tat org.apache.spark"
    )
    stopping = stopping_error(text, CONFIG.kafka)
    assert type(stopping) is LogContinuityError
    assert str(stopping) == "part 1 of 2 stands where part 0 has to"
    assert type(stopping_error("x.InvariantViolationError: y", CONFIG.kafka)) is InvariantViolationError
    assert stopping_error("org.apache.kafka.common.errors.TimeoutException: no answer", CONFIG.kafka) is None


def test_what_kafka_does_not_allow_forbids_a_restart() -> None:
    """A right that is missing or a wrong password does not pass: one sentence, instead of restarts for ever."""
    kafka = KafkaConfig("localhost:9092", {"sasl.username": "spark", "sasl.password": "hidden"})
    text = (
        "x\norg.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [c.heartbeats]"
    )
    stopping = stopping_error(text, kafka)
    assert type(stopping) is NotAllowedError
    assert "does not allow User:spark to use topic c.heartbeats (TopicAuthorizationException)" in str(stopping)
    text = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed: Invalid username"
    refused = stopping_error(text, kafka)
    assert type(refused) is ConfigurationError
    assert "Kafka refuses the login of User:spark: Authentication failed" in str(refused)
    assert "hidden" not in f"{stopping}{refused}{kafka}"

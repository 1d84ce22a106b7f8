"""The only place that builds a Spark session."""

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from controlplane.errors import PrerequisiteError
from streaming.config import DELTA_CATALOG, SparkConfig
from streaming.error_texts import root_reason

_STANDARD_ERROR: Final = 2
_LOG_BYTES: Final = 10_000_000
"""A greater log of former starts is moved aside at a start."""
_LAST_BYTES: Final = 5_000
_CODE_FOLDER = Path(__file__).resolve().parents[1]
"""The folder of the packages ``streaming`` and ``controlplane``, which Spark's Python workers import."""
_JVM_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The fast compiler and the single-threaded collector, because in short batches most of the work is planning, and other
processes need the machine too."""
_CLASSES: Final[Mapping[str, str]] = {
    "Kafka": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "Delta": DELTA_CATALOG,
}
"""One class of each library that Spark has only if it was given the pipeline's jars."""
_JVM_ENDED: Final = "JAVA_GATEWAY_EXITED"
_GIVEN_UP: Final = re.compile(r"stopped SparkContext|running MetricsSystem")
"""What Spark says, in place of a reason, when it stopped its own context because no master answered."""
_JVM_WORDS: Final = re.compile(r'^Exception in thread "main" [\w.$]+: (.+)$', re.MULTILINE)


def build_session(
    app_name: str,
    config: SparkConfig,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    reads_topics: bool = False,
) -> SparkSession:
    """A session that reads Delta, and Kafka if it is to; takes 5 to 20 s. A process has one.

    Args:
        app_name: its name in Spark's lists.
        config: where it runs, and on what.
        settings: Spark's own settings, by their names; they go before those that are made here.
        reads_topics: whether it needs the library for Kafka.

    Raises:
        PrerequisiteError: a jar is missing, Spark does not start, or it lacks the libraries for Kafka or Delta.
    """
    missing = [] if is_submitted() else [str(jar) for jar in config.jars if not jar.is_file()]
    if missing:
        message = f"jars of the pipeline are missing: {', '.join(missing)}"
        raise PrerequisiteError(f"{message}; 'python -m controlplane.embedded.jars spark' fetches them")
    if config.java_home is not None:
        os.environ["JAVA_HOME"] = str(config.java_home)
    # Spark starts its Python workers with these variables, which may name another interpreter than the present one.
    if not is_submitted():
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(app_name)
    for name, value in {**_settings(config), **settings}.items():
        builder = builder.config(name, value)
    with _signals_left_alone(), _output_kept(config.log_file) as printed_before:
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise _not_started(error, config, printed_before) from error
    _refuse_without_libraries(session, ("Kafka", "Delta") if reads_topics else ("Delta",))
    session.sparkContext.setLogLevel("ERROR")
    # It repeats each failed query as one long line, beside the exception that its caller reports.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # So does py4j with what a batch raises, also with the end of one that is stopped.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    return session


def _not_started(error: Exception, config: SparkConfig, printed_before: int) -> PrerequisiteError:
    """The reason why there is no session, in one line."""
    more = "" if config.log_file is None else f"; what it printed is in {config.log_file}"
    master, reason = config.master, None
    jvm = SparkContext._jvm  # noqa: SLF001 - it is there when the JVM has started and the context has not
    if jvm is not None:
        with suppress(Py4JError):  # the JVM ended meanwhile
            master = jvm.java.lang.System.getProperty("spark.master") or master
            reason = root_reason(error)
    elif isinstance(error, PySparkRuntimeError) and error.getCondition() == _JVM_ENDED:
        reason = _last_words(config.log_file, printed_before)
    else:
        reason = root_reason(error)
    if reason is None:
        message = "Spark does not start, its JVM ended: is Java 17 or 21 installed, and is there memory for it?"
        return PrerequisiteError(f"{message}{more}")
    if master.startswith("spark:") and _GIVEN_UP.search(reason):
        reason = "it does not answer; see that it runs, and that this machine reaches it by this address"
    at = f" at the master {master}" if master else ""
    return PrerequisiteError(f"Spark does not start{at}: {reason}{more}")


def _last_words(log_file: Path | None, printed_before: int) -> str | None:
    """Why a JVM ended, by the end of what it printed; None if it did not say."""
    if log_file is None or is_submitted():
        return None
    with log_file.open("rb") as log:
        log.seek(max(printed_before, log_file.stat().st_size - _LAST_BYTES))
        printed = log.read().decode("utf-8", errors="replace")
    found = _JVM_WORDS.findall(printed)
    return found[-1] if found else None


def _refuse_without_libraries(session: SparkSession, needed: Sequence[str]) -> None:
    """Check that Spark was given the pipeline's jars, and end a session without them.

    Raises:
        PrerequisiteError: it was not.
    """
    lacking = [name for name in needed if not _has_class(session, _CLASSES[name])]
    if lacking:
        session.stop()
        message = (
            f"Spark lacks the libraries for {' and '.join(lacking)}: give spark-submit "
            '--jars "$(controlplane pipeline jars)" (docs/how-to/run-the-pipeline-on-spark.md has the steps)'
        )
        raise PrerequisiteError(message)


def _has_class(session: SparkSession, name: str) -> bool:
    jvm: Any = session._jvm  # noqa: SLF001 - pyspark has no other way
    java = jvm.java.lang
    try:
        java.Class.forName(name, False, java.Thread.currentThread().getContextClassLoader())  # noqa: FBT003 - Java's
    except Py4JJavaError:
        return False
    return True


@contextmanager
def _signals_left_alone() -> Iterator[None]:
    """Keep the caller's handler of Ctrl-C: Spark's own handler raises an exception at any point of the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    callers = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, callers)


@contextmanager
def _output_kept(log_file: Path | None) -> Iterator[int]:
    """Let what is started in the block, the JVM and through it the Python workers, write standard error to a file.

    Yields:
        how many bytes former starts have left in the file.

    Raises:
        PrerequisiteError: the file cannot be opened.
    """
    if log_file is None or is_submitted():
        yield 0
        return
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        if log_file.exists() and log_file.stat().st_size > _LOG_BYTES:
            log_file.replace(log_file.with_name(f"{log_file.name}.former"))
        log = log_file.open("ab")
    except OSError as error:
        raise PrerequisiteError(f"the file for what Spark prints, {log_file}, cannot be written: {error}") from error
    terminal = os.dup(_STANDARD_ERROR)
    try:
        with log:
            os.dup2(log.fileno(), _STANDARD_ERROR)
            printed_before = log.tell()
        yield printed_before
    finally:
        os.dup2(terminal, _STANDARD_ERROR)
        os.close(terminal)


def is_submitted() -> bool:
    """Whether spark-submit has started this process, and the JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _place(config: SparkConfig) -> dict[str, str]:
    """Where driver and executors run, and on what."""
    if is_submitted():
        return {}
    of_driver = {
        "spark.driver.memory": f"{config.driver_memory_mib}m",
        "spark.driver.extraJavaOptions": _JVM_OPTIONS,
        "spark.jars": ",".join(str(jar) for jar in config.jars),
        "spark.executorEnv.PYTHONPATH": str(_CODE_FOLDER),
    }
    if config.master:
        return {**of_driver, "spark.master": config.master, "spark.cores.max": str(config.cores)}
    here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return {**of_driver, **here, "spark.master": f"local[{config.cores}]"}


def _settings(config: SparkConfig) -> dict[str, str]:
    parts = str(config.cores)
    return {
        **_place(config),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        # No catalog on disk: tables are known by their folders, and nothing is left in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        # Each part is a task with a fixed cost; the defaults (200, and 50 for Delta's own state) are for clusters.
        "spark.sql.shuffle.partitions": parts,
        "spark.default.parallelism": parts,
        "spark.databricks.delta.snapshotPartitions": "1",
        # A load report of 100 bundles takes some 10 KB as columns: 20 MB at once, where the default makes 100 MB of it.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
        # Batches are short and alike: what adaptive plans save costs less than planning them anew in each batch.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.cache.maxEntries": "2000",
        # The text of a plan with wide rows is made for each batch, and read by nothing here.
        "spark.sql.maxPlanStringLength": "1000",
        "spark.sql.streaming.metricsEnabled": "false",
        # Old entries of the checkpoints; the newest ones are all that a restart needs.
        "spark.sql.streaming.minBatchesToRetain": "20",
    }

"""What a start of Spark says when it cannot be: one sentence, with what to do, and nothing of Java's trace."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.embedded.java import find_java
from controlplane.errors import PrerequisiteError
from streaming.config import SparkConfig
from streaming.session import build_session
from tests.helpers.readme import ROOT, clean_environment

STARTED = """
import json, sys
from pathlib import Path
from controlplane.errors import PrerequisiteError
from streaming.config import SparkConfig
from streaming.session import build_session

try:
    build_session("test", SparkConfig(jars=(), master=sys.argv[1], log_file=Path("spark.log")), reads_topics=True)
except PrerequisiteError as error:
    print(json.dumps(str(error)))
"""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def start(folder: Path, master: str, *, submits: bool) -> "subprocess.Popen[str]":
    """A program that starts Spark at a master, itself or by spark-submit."""
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(STARTED, encoding="utf-8")
    environment = clean_environment() | {
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    starter = ["spark-submit", "--master", master] if submits else [sys.executable]
    return subprocess.Popen(
        [*starter, program, master],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(started: "subprocess.Popen[str]") -> str:
    """What such a program is told in place of a session."""
    output, errors = started.communicate()
    assert started.returncode == 0, errors
    text = json.loads(output.splitlines()[-1])
    assert isinstance(text, str)
    assert "\n" not in text
    return text


def test_spark_without_the_pipelines_jars_is_refused(tmp_path: Path) -> None:
    """Or the first stream would end with a traceback, after the tables were created."""
    assert told(start(tmp_path, "local[1]", submits=True)) == (
        "Spark lacks the libraries for Kafka and Delta: give spark-submit "
        '--jars "$(controlplane pipeline jars)" (docs/how-to/run-the-pipeline-on-spark.md has the steps)'
    )


def test_a_jvm_that_ends_tells_its_reason(tmp_path: Path) -> None:
    """It stands in the file for what Spark prints, behind what former starts have printed."""
    former = 'Exception in thread "main" org.apache.spark.SparkException: the reason of a former start\n'
    (tmp_path / "spark.log").write_text(former, encoding="utf-8")
    text = told(start(tmp_path, "yarn", submits=False))
    assert text.startswith("Spark does not start at the master yarn: When running with master 'yarn' either HADOOP")
    assert text.endswith("; what it printed is in spark.log")


@pytest.mark.slow
def test_a_master_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """Spark itself speaks of a context that was stopped, after a minute, which both ways to start it wait at once."""
    master = "spark://127.0.0.1:1"
    both = [start(tmp_path / str(submits), master, submits=submits) for submits in (True, False)]
    for text in [told(started) for started in both]:
        assert text.startswith(f"Spark does not start at the master {master}: it does not answer; see that")


@pytest.mark.usefixtures("spark")
def test_ctrl_c_stays_the_callers() -> None:
    """Spark sets a handler of its own, under which the pipeline would end in the middle of a call, with a trace."""
    handler = signal.getsignal(signal.SIGINT)
    assert not getattr(handler, "__module__", "").startswith("pyspark")


def test_missing_jar_is_named(tmp_path: Path) -> None:
    """Spark would start without the jar and fail later with a class name."""
    with pytest.raises(PrerequisiteError, match=r"none\.jar"):
        build_session("tests", SparkConfig(jars=(tmp_path / "none.jar",)))

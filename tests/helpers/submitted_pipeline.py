"""The pipeline on a cluster of Spark, submitted by a block of the page about it, and what it has written."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from controlplane.embedded.java import find_java
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.contracts.table import TableContract
from streaming.storage import StoragePath
from streaming.tables.stored_table import StoredTable
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report
from tests.helpers.readme import ROOT, block_with
from tests.helpers.standalone_spark import StandaloneSpark

PAGE: Final = ROOT / "docs" / "how-to" / "run-the-pipeline-on-spark.md"
BUNDLES: Final = [f"kv/0x{number:08x}_0x{number + 1:08x}" for number in range(40)]
DEADLINE_S: Final = 420.0
_END_S: Final = 60.0
_SUBMIT: Final = "spark-submit \\\n"


class SubmittedPipeline:
    """A running ``spark-submit``.

    Args:
        process: it, which has started the driver.
        log: the output of both.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    def end(self) -> None:
        """Send SIGTERM to the driver, as the page says, and expect that all ends well."""
        (driver,) = [each for each in psutil.Process(self._process.pid).children() if "python" in each.name()]
        driver.terminate()
        assert self._process.wait(_END_S) == 0, self._log.read_text(errors="replace")[-4_000:]


@contextmanager
def submitted(
    world: PipelineWorld,
    cluster: StandaloneSpark,
    folder: Path,
    block_name: str,
    environment: Mapping[str, str],
    here: Mapping[str, str] | None = None,
) -> Iterator[SubmittedPipeline]:
    """Carry out a block of the page in a folder, as a shell does; kill what is left of it at the end.

    Args:
        world: the topics to read and the folder of the tables.
        cluster: where it is submitted.
        folder: the working directory, which gets the log.
        block_name: which block.
        environment: variables of the shell.
        here: words of the block, and what stands for them here, beside the addresses and names.
    """
    given = {
        "spark://master.example:7077": cluster.master,
        "kafka.example:9092": world.kafka.bootstrap_servers,
        "--cluster eu": f"--cluster {world.cluster.name}",
        "/shared/delta": str(world.tables_dir),
        "pipeline run": "pipeline run --buckets 4 --trigger-interval-ms 500",
        _SUBMIT: f"exec {_SUBMIT}",
        **(here or {}),
    }
    block = block_with(PAGE, block_name, given)
    log = folder / "pipeline.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/bash", "-e", "-c", block],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
        )
    try:
        yield SubmittedPipeline(process, log)
    except BaseException:
        sys.stderr.write(log.read_text(errors="replace")[-6_000:])
        raise
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def report_round(world: PipelineWorld, number: int) -> None:
    """Append one report of each of 4 nodes, which have all bundles between them."""
    world.report(*(load_report(f"n{node}", map(bundle_load, BUNDLES[node::4]), number=number) for node in range(4)))


def count(tables_dir: StoragePath, table: TableContract) -> int:
    """The number of a table's rows."""
    try:
        return int(StoredTable(tables_dir, table).rows(columns=[table.columns[0]]).num_rows)
    except Exception:  # noqa: BLE001 - it may not be there yet
        return 0


def has_folded(tables_dir: StoragePath, rounds: int) -> bool:
    """Whether so many rounds of reports are in every table."""
    if (count(tables_dir, LOAD_REPORTS_TABLE), count(tables_dir, BROKER_LOAD_TABLE)) != (4 * rounds, 4):
        return False
    rows = StoredTable(tables_dir, BUNDLE_LOAD_TABLE).rows().to_pylist()
    return [row["long_term"]["sample_count"] for row in rows] == [rounds] * len(BUNDLES)

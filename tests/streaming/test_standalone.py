"""The pipeline on a standalone cluster of Spark, submitted as the page says; an executor is killed in the middle."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from controlplane.embedded.java import find_java
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.contracts.table import TableContract
from streaming.driver_tables import DriverTable
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report
from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT, blocks
from tests.helpers.standalone_spark import StandaloneSpark

PAGE = ROOT / "docs" / "how-to" / "run-the-pipeline-on-spark.md"
BUNDLES = [f"kv/0x{number:08x}_0x{number + 1:08x}" for number in range(40)]
DEADLINE_S = 240.0

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(900)]


def submit(world: PipelineWorld, cluster: StandaloneSpark, log: Path) -> "subprocess.Popen[bytes]":
    """Carry out the page's block with this cluster's addresses, as a shell does."""
    block = blocks(PAGE)["submit"]
    given = {
        "spark://master.example:7077": cluster.master,
        "kafka.example:9092": world.kafka.bootstrap_servers,
        "--cluster eu": f"--cluster {world.cluster.name}",
        "/shared/delta": str(world.warehouse_dir),
        "pipeline run": "pipeline run --trigger-interval-ms 500",
    }
    for named, here in given.items():
        assert named in block
        block = block.replace(named, here)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            ["/bin/bash", "-c", f"exec {block}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def count(world: PipelineWorld, table: TableContract) -> int:
    """The number of a table's rows."""
    try:
        return int(DriverTable(world.warehouse_dir, table, "").rows(columns=[table.columns[0]]).num_rows)
    except Exception:  # noqa: BLE001 - it may not be there yet
        return 0


def has_folded(world: PipelineWorld, rounds: int) -> bool:
    """Whether so many reports of each of 4 nodes are in every table."""
    if (count(world, LOAD_REPORTS_TABLE), count(world, BROKER_LOAD_TABLE)) != (4 * rounds, 4):
        return False
    rows = DriverTable(world.warehouse_dir, BUNDLE_LOAD_TABLE, "").rows().to_pylist()
    return [row["long_term"]["sample_count"] for row in rows] == [rounds] * len(BUNDLES)


def test_what_the_page_submits_survives_an_executor(make_world: Callable[[], PipelineWorld], tmp_path: Path) -> None:
    """Reports sent before and after its death are in the tables once, and each bundle has all its samples."""
    world, log = make_world(), tmp_path / "pipeline.log"
    with StandaloneSpark(tmp_path / "spark") as cluster:
        process = submit(world, cluster, log)
        try:
            for number in range(3):
                reports = [
                    load_report(f"n{node}", map(bundle_load, BUNDLES[node::4]), number=number) for node in range(4)
                ]
                world.report(*reports)
                poll_until(partial(has_folded, world, number + 1), DEADLINE_S)
                if number == 1:
                    cluster.executors()[0].kill()
            (driver,) = [each for each in psutil.Process(process.pid).children() if "python" in each.name()]
            driver.terminate()
            assert process.wait(60) == 0, log.read_text(errors="replace")[-4_000:]
        except BaseException:
            sys.stderr.write(log.read_text(errors="replace")[-6_000:])
            raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert count(world, LOAD_REPORTS_TABLE) == 12

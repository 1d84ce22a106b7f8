"""The pipeline on a standalone cluster of Spark, submitted as the page says, in both ways."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyspark
import pytest

from controlplane.embedded.java import find_java
from infra.spark.pack import pack
from streaming.contracts.records import LOAD_REPORTS_TABLE
from tests.helpers.pipeline_world import PipelineWorld
from tests.helpers.polling import poll_until
from tests.helpers.readme import block_with, clean_environment
from tests.helpers.standalone_spark import StandaloneSpark
from tests.helpers.submitted_pipeline import DEADLINE_S, PAGE, count, has_folded, report_round, submitted

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(900)]


def test_what_the_page_submits_survives_an_executor(make_world: Callable[[], PipelineWorld], tmp_path: Path) -> None:
    """Reports sent before and after its death are in the tables once, and each bundle has all its samples."""
    world = make_world()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (
        StandaloneSpark(tmp_path / "spark") as cluster,
        submitted(world, cluster, tmp_path, "installed", environment) as pipeline,
    ):
        for number in range(3):
            report_round(world, number)
            poll_until(partial(has_folded, world.tables_dir, number + 1), DEADLINE_S)
            if number == 1:
                cluster.executors()[0].kill()
        pipeline.end()
    assert count(world.tables_dir, LOAD_REPORTS_TABLE) == 12


def test_what_is_shipped_is_all_that_workers_need(make_world: Callable[[], PipelineWorld], tmp_path: Path) -> None:
    """Neither the workers' Python nor the driver's has this checkout or any library of it."""
    world, folder = make_world(), tmp_path / "elsewhere"
    pack(folder / "pipeline-env.zip")
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin"
    spark_home = Path(pyspark.__file__).parent
    environment = clean_environment() | {
        "PATH": os.pathsep.join([str(bare), str(spark_home / "bin"), os.defpath]),
        "SPARK_HOME": str(spark_home),
    }
    for module in ("controlplane", "confluent_kafka", "numpy", "pyspark"):
        imported = subprocess.run(
            [bare / PYTHON, "-c", f"import {module}"], cwd=folder, env=environment, capture_output=True, check=False
        )
        assert b"ModuleNotFoundError" in imported.stderr, module
    with (
        StandaloneSpark(tmp_path / "spark", environment=environment) as cluster,
        submitted(world, cluster, folder, "shipped", environment, {"python3.11": PYTHON}) as pipeline,
    ):
        report_round(world, 0)
        poll_until(partial(has_folded, world.tables_dir, 1), DEADLINE_S)
        assert cluster.executors()
        pipeline.end()
        check = block_with(
            PAGE,
            "command",
            {
                "python3.11": PYTHON,
                "kafka.example:9092": world.kafka.bootstrap_servers,
                "--cluster eu": f"--cluster {world.cluster.name}",
                "/shared/delta": str(world.tables_dir),
            },
        )
        checked = subprocess.run(
            ["/bin/bash", "-e", "-c", check],
            cwd=folder,
            env={**environment, "JAVA_HOME": str(find_java().home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert ["load-reports", "4", "0", "0"] in [line.split() for line in checked.stdout.splitlines()]
    shutil.rmtree(folder)  # half a gigabyte

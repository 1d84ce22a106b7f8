"""The pipeline with its tables in an object store, started as the page says, killed, doubled, and asked."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from streaming.contracts.records import LOAD_REPORTS_TABLE
from streaming.storage import ObjectPath
from tests.helpers.pipeline_world import PipelineWorld
from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT, block_with
from tests.helpers.s3_server import s3_server
from tests.helpers.submitted_pipeline import DEADLINE_S, count, has_folded, report_round

PAGE = ROOT / "docs" / "how-to" / "keep-tables-in-an-object-store.md"

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]


@contextmanager
def running(world: PipelineWorld, folder: Path, environment: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """What the page's block starts; killed at the end of the block, with all that it has started."""
    given = {
        "controlplane --cluster eu": f"exec controlplane --cluster {world.cluster.name}",
        "kafka.example:9092": world.kafka.bootstrap_servers,
        "pipeline run": "pipeline run --buckets 4 --trigger-interval-ms 500 --maintenance-interval-ms 5000",
        "/var/lib/controlplane/checkpoints": str(folder / "checkpoints"),
    }
    block = block_with(PAGE, "run", given)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "pipeline.log").open("ab") as output:
        process = subprocess.Popen(
            ["/bin/bash", "-e", "-c", block],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | environment | {"PATH": path, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
    try:
        yield process
    except BaseException:
        sys.stderr.write((folder / "pipeline.log").read_text(errors="replace")[-6_000:])
        raise
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_tables_in_an_object_store(
    make_world: Callable[[], PipelineWorld], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is reported before and after a kill is in the tables once; a second pipeline is refused; SQL answers."""
    world = make_world()
    tables = ObjectPath("tables", "eu")
    with s3_server(tmp_path, "tables") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with running(world, tmp_path, environment):
            for number in range(2):
                report_round(world, number)
                poll_until(partial(has_folded, tables, number + 1), DEADLINE_S)
        with running(world, tmp_path, environment) as process:
            report_round(world, 2)
            poll_until(partial(has_folded, tables, 3), DEADLINE_S)
            with running(world, tmp_path, environment) as second:
                assert second.wait(120) != 0
            assert "another pipeline writes the tables in s3a://tables/eu" in (tmp_path / "pipeline.log").read_text()
            process.terminate()
            assert process.wait(60) == 0
        assert count(tables, LOAD_REPORTS_TABLE) == 12
        asked = [*(sys.executable, "-m", "controlplane.cli", "sql", "--tables-dir", "s3a://tables/eu")]
        query = "select count(*) as reports, count(distinct node_id) as nodes from load_reports"
        answer = subprocess.run(
            [*asked, query], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
        )
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.split()[-2:] == [b"12", b"4"]

"""The pipeline as a process of its own, to be killed with all that it has started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streaming.contracts.table import TableContract
from tests.helpers.pipeline_world import PipelineWorld

ROOT: Final = Path(__file__).resolve().parents[2]
_END_S: Final = 300.0


def start(world: PipelineWorld, log: Path, batch_size: int, master: str = "") -> "subprocess.Popen[bytes]":
    """Start it in a process group of its own; it ends when its standard input does.

    Args:
        world: the cluster whose topics it reads.
        log: where its output goes, after what is there.
        batch_size: the greatest number of records of a batch.
        master: of the Spark cluster whose executors it uses; empty for its own process.
    """
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "run_pipeline.py")]
    arguments = [world.kafka.bootstrap_servers, world.cluster.name, str(world.tables_dir), str(batch_size), master]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )


def end(process: "subprocess.Popen[bytes]") -> int:
    """Let it end by itself; its exit status."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(_END_S)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """SIGKILL for the process, its JVM and its workers, all at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running(world: PipelineWorld, log: Path, batch_size: int, master: str = "") -> Iterator["subprocess.Popen[bytes]"]:
    """It runs; at the end of the block it is let end, and killed if it does not."""
    process = start(world, log, batch_size, master)
    try:
        yield process
        end(process)
    finally:
        if process.poll() is None:
            kill(process)


def commits(world: PipelineWorld, table: TableContract) -> int:
    """How many versions a table has; 0 before it is there."""
    return len(list((world.tables_dir / table.name / "_delta_log").glob("*.json")))

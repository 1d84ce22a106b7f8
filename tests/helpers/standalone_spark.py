"""A real standalone cluster of Spark on this machine: a master and workers, each a JVM of pyspark's own Spark."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil
import pyspark

from controlplane.embedded.java import find_java

_START_S: Final = 60.0
_HOME: Final = Path(pyspark.__file__).parent
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


def _words(process: psutil.Process) -> list[str]:
    """Of its command line; none if it has ended."""
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


class StandaloneSpark:
    """Runs from the beginning of a ``with`` block to its end.

    Args:
        folder: logs and the executors' folders.
        worker_count: how many workers there are.
        worker_memory_mib: the memory that each may give to executors.
        environment: variables of master, workers and executors; None: those of this process.
    """

    def __init__(
        self,
        folder: Path,
        worker_count: int = 2,
        worker_memory_mib: int = 1_024,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._worker_count = worker_count
        self._worker_memory_mib = worker_memory_mib
        self._environment = os.environ if environment is None else environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        """Start the master and its workers, of one core each."""
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        self.master = self._await(log, r"Starting Spark master at (spark://\S+)")
        for number in range(self._worker_count):
            log = self._start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--port", "0", "--cores", "1"),
                *("--memory", f"{self._worker_memory_mib}M", "--work-dir", str(self._folder / f"work-{number}")),
                self.master,
            )
            self._await(log, "(Successfully registered with master)")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of them, with the executors that workers have started."""
        for process in reversed(self._processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def executors(self) -> list[psutil.Process]:
        """The processes of executors that run."""
        children = [each for worker in self._living_workers() for each in psutil.Process(worker.pid).children()]
        return [child for child in children if _EXECUTOR in " ".join(_words(child))]

    def living_workers(self) -> int:
        """How many workers run."""
        return len(self._living_workers())

    def kill_a_worker(self) -> None:
        """SIGKILL for a worker and the executors that it has started."""
        worker = self._living_workers()[0]
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def _living_workers(self) -> list["subprocess.Popen[bytes]"]:
        return [process for process in self._processes[1:] if process.poll() is None]

    def _start(self, name: str, main_class: str, *arguments: str) -> Path:
        java = find_java()
        log = self._folder / f"{name}.log"
        environment = {
            **self._environment,
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # What Spark's own scripts find out, which are not used here.
            "SPARK_SCALA_VERSION": "2.13",
        }
        command = [str(java.executable), "-Xmx256m", "-cp", f"{_HOME}/jars/*", main_class]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--webui-port", "0", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return log

    def _await(self, log: Path, pattern: str) -> str:
        deadline_s = time.monotonic() + _START_S
        while time.monotonic() < deadline_s:
            found = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
            time.sleep(0.1)
        raise AssertionError(f"not within {_START_S} s: {pattern}\n{log.read_text(errors='replace')[-2_000:]}")

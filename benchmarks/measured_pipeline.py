"""A pipeline that is measured from outside: its processes, and what it has committed to its tables."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from controlplane.config import ClusterConfig
from tests.helpers.running_programs import running_programs
from tests.helpers.standalone_spark import StandaloneSpark

_MEMORY_MIB: Final = 2_048
_DEADLINE_S: Final = 1_800.0
_PRINT_EVERY_S: Final = 60.0


class Commit(NamedTuple):
    """One version of a table.

    Attributes:
        batch_id: the number of the stream's batch; -1 for a version that no batch wrote.
        row_count: rows of its new files.
        committed_s: seconds since 1970.
    """

    batch_id: int
    row_count: int
    committed_s: float


class TableLog:
    """The log of one table, read on from where the last reading ended."""

    def __init__(self, table: Path) -> None:
        self._folder = table / "_delta_log"
        self._next_version = 0

    def new_commits(self) -> list[Commit]:
        """Those since the last call, in order."""
        found = []
        while (path := self._folder / f"{self._next_version:020}.json").exists():
            actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            written = [action["txn"] for action in actions if "txn" in action]
            # A stream of Spark writes under its query's id; what stands beside it has a name of the control plane.
            numbers = [each["version"] for each in written if not each["appId"].startswith("controlplane.")]
            added = [json.loads(action["add"]["stats"])["numRecords"] for action in actions if "add" in action]
            found.append(Commit(max(numbers, default=-1), sum(added), path.stat().st_mtime))
            self._next_version += 1
        return found


class ProcessTree:
    """The processes of a pipeline, with what they have spent; also of those that have ended since they were seen.

    Args:
        process: the driver.
        output: what it prints.
        executors: returns the JVMs of a cluster's executors.

    Attributes:
        resident_mib: the memory of each kind of process: ``driver`` (Python), ``jvm`` (the driver's), ``executors``
            (their JVMs), ``workers`` (Python beside executors).
        greatest_mib: the most that each kind had.
    """

    def __init__(
        self, process: "subprocess.Popen[bytes]", output: Path, executors: Callable[[], Iterable[psutil.Process]]
    ) -> None:
        self._process = process
        self._output = output
        self._executors = executors
        self._seen: dict[int, tuple[str, float]] = {}
        self.resident_mib: dict[str, float] = {}
        self.greatest_mib: dict[str, float] = {}

    def look(self) -> None:
        """Note what each process has spent until now, and the memory of each kind.

        Raises:
            RuntimeError: the pipeline has ended.
        """
        if self._process.poll() is not None:
            words = self._output.read_text(encoding="utf-8", errors="replace")[-2_000:]
            raise RuntimeError(f"the pipeline has ended with status {self._process.returncode}:\n{words}")
        resident: dict[str, float] = {}
        self._look_below(psutil.Process(self._process.pid), "jvm", resident)
        for executor in self._executors():
            self._look_below(executor, "executors", resident)
        self.resident_mib = resident
        for kind, mib in resident.items():
            self.greatest_mib[kind] = max(self.greatest_mib.get(kind, 0.0), mib)

    def _look_below(self, root: psutil.Process, kind_of_jvm: str, resident: dict[str, float]) -> None:
        for each, words in running_programs(root):
            try:
                times, memory = each.cpu_times(), each.memory_info()
            except psutil.Error:
                continue
            kind = kind_of_jvm if "java" in words[0] else "workers" if "pyspark.daemon" in words else "driver"
            self._seen[each.pid] = kind, times.user + times.system
            resident[kind] = resident.get(kind, 0.0) + memory.rss / (1 << 20)

    def spent(self) -> dict[str, float]:
        """Processor seconds until now by the kind of process."""
        self.look()
        total: dict[str, float] = {}
        for kind, seconds in self._seen.values():
            total[kind] = total.get(kind, 0.0) + seconds
        return total


class Progress:
    """How far the tables of a pipeline are.

    Args:
        tables: their folder.
        tree: the pipeline, which is looked at while its tables are waited for.
    """

    def __init__(self, tables: Path, tree: ProcessTree) -> None:
        self._reports, self._nodes = TableLog(tables / "load_reports"), TableLog(tables / "broker_load")
        self._tree = tree
        self._report_count = 0
        self._history_batch = self._nodes_batch = -1

    def wait_for(self, report_count: int, deadline_s: float = _DEADLINE_S, *, print_progress: bool = False) -> None:
        """Wait until the history has so many reports, and the nodes' rows are those after the last of them."""
        began_s = printed_s = time.monotonic()
        while self._report_count < report_count or self._nodes_batch < self._history_batch:
            now_s = time.monotonic()
            if now_s > began_s + deadline_s:
                raise TimeoutError(f"{report_count} reports were not folded within {deadline_s:.0f} s")
            self._tree.look()
            if print_progress and now_s > printed_s + _PRINT_EVERY_S:
                printed_s = now_s
                memory = ", ".join(f"{kind} {mib:,.0f}" for kind, mib in sorted(self._tree.resident_mib.items()))
                print(f"{now_s - began_s:6.0f} s: {self._report_count:,} reports; MiB {memory}", flush=True)
            time.sleep(0.1)
            for commit in self._reports.new_commits():
                self._report_count += commit.row_count
                self._history_batch = max(self._history_batch, commit.batch_id)
            self._nodes_batch = max([self._nodes_batch, *(commit.batch_id for commit in self._nodes.new_commits())])


@contextmanager
def running_pipeline(
    servers: str,
    cluster: ClusterConfig,
    checkout: Path,
    folder: Path,
    cores: int,
    *,
    words: Sequence[str] = (),
    spark: StandaloneSpark | None = None,
) -> Iterator[ProcessTree]:
    """The pipeline as its command starts it, with a trigger each second; killed at the end of the block.

    Args:
        servers: of Kafka.
        cluster: whose topics are read.
        checkout: the folder of the code.
        folder: gets the tables in ``delta``, and what the pipeline prints in ``output``.
        cores: of Spark.
        words: more options of the command.
        spark: the cluster whose executors it uses; None: it needs none.
    """
    command = [
        *(sys.executable, "-m", "controlplane.cli", "--cluster", cluster.name, "--bootstrap-servers", servers),
        *("pipeline", "run", "--tables-dir", str(folder / "delta"), "--cores", str(cores)),
        *("--memory-mib", str(_MEMORY_MIB), "--trigger-interval-ms", "1000"),
        *(("--master", spark.master) if spark else ()),
        *words,
    ]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    output = folder / "output"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=sink, stderr=sink, start_new_session=True
        )
        try:
            yield ProcessTree(process, output, spark.executors if spark else list)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

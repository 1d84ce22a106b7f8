"""Starting the pipeline and killing it, or a part of it, again and again."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final

import psutil

from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE, SPLIT_CANDIDATES_TABLE
from streaming.contracts.records import DECISIONS_TABLE, LOAD_REPORTS_TABLE
from tests.helpers.pipeline_process import commits, end, kill, start
from tests.helpers.pipeline_world import PipelineWorld
from tests.helpers.running_programs import running_programs
from tests.helpers.standalone_spark import StandaloneSpark

_START_S: Final = 180.0
_POLL_S: Final = 0.02
_WATCHED: Final = (LOAD_REPORTS_TABLE, BUNDLE_LOAD_TABLE, SPLIT_CANDIDATES_TABLE, BROKER_LOAD_TABLE, DECISIONS_TABLE)


class KillKind(Enum):
    """What is killed."""

    ALL = "process, JVM and workers"
    AFTER_COMMIT = "all of them, right after a commit of one table"
    JVM = "the JVM alone"
    WORKER = "a Python worker: its task is repeated"
    STOP = "nothing: it is asked to end"
    EXECUTOR = "an executor of the cluster: its tasks are repeated"
    SPARK_WORKER = "a worker of the cluster, with its executor: there is one less from then on"


class PipelineKiller:
    """One pipeline at a time.

    Args:
        world: the cluster whose topics it reads.
        source: of all choices.
        log: where its output goes.
        batch_size: the greatest number of records of a batch.
        cluster: the Spark cluster whose executors it uses; None for its own process.
    """

    def __init__(
        self,
        world: PipelineWorld,
        source: random.Random,
        log: Path,
        batch_size: int,
        cluster: StandaloneSpark | None = None,
    ) -> None:
        self._world = world
        self._source = source
        self._log = log
        self._batch_size = batch_size
        self._cluster = cluster
        self.counts: Counter[KillKind] = Counter()

    def live_and_die(self) -> KillKind:
        """Start it, wait until it writes, let it work for a time, and kill what is drawn."""
        before = self._commits()
        process = start(self._world, self._log, self._batch_size, self._cluster.master if self._cluster else "")
        try:
            self._wait(process, lambda: self._commits() > before, _START_S)
            time.sleep(self._source.uniform(0, 12))
            kind = self._source.choice([each for each in KillKind if self._can(each)])
            has_struck = self._strike(process, kind)
        finally:
            if process.poll() is None:
                kill(process)
        kind = kind if has_struck else KillKind.ALL
        self.counts[kind] += 1
        return kind

    def _can(self, kind: KillKind) -> bool:
        if kind is KillKind.WORKER:  # on a cluster they are an executor's
            return self._cluster is None
        if kind is KillKind.SPARK_WORKER:  # one has to be left
            return self._cluster is not None and self._cluster.living_workers() > 1
        return kind is not KillKind.EXECUTOR or self._cluster is not None

    def _strike(self, process: "subprocess.Popen[bytes]", kind: KillKind) -> bool:
        """Whether there was what is to be killed; if not, all is killed after it."""
        if kind is KillKind.AFTER_COMMIT:
            table = self._source.choice(_WATCHED)
            seen = commits(self._world, table)
            self._wait(process, lambda: commits(self._world, table) > seen, 20.0)
            return commits(self._world, table) > seen
        if kind is KillKind.JVM:
            has_killed = self._kill_one(process, "java")
            if has_killed:
                self._wait(process, lambda: False, _START_S)
                printed = self._log.read_text(errors="replace")[-6_000:]
                assert process.poll() is not None, f"without its JVM it lives on after {_START_S:g} s:\n{printed}"
            return has_killed
        if kind is KillKind.WORKER:
            return sum(self._kill_one_and_wait(process, "pyspark.daemon") for _ in range(3)) > 0
        if kind is KillKind.STOP:
            assert end(process) == 0
        elif kind is KillKind.EXECUTOR and self._cluster is not None:
            executors = self._cluster.executors()
            for executor in executors[:1]:
                executor.kill()
            time.sleep(self._source.uniform(4, 16))
            return bool(executors)
        elif kind is KillKind.SPARK_WORKER and self._cluster is not None:
            self._cluster.kill_a_worker()
            time.sleep(self._source.uniform(2, 8))
        return True

    def _kill_one_and_wait(self, process: "subprocess.Popen[bytes]", word: str) -> bool:
        has_killed = self._kill_one(process, word)
        time.sleep(self._source.uniform(1, 4))
        return has_killed

    def _kill_one(self, process: "subprocess.Popen[bytes]", word: str) -> bool:
        programs = running_programs(psutil.Process(process.pid))
        found = [each for each, words in programs if word in {Path(part).name for part in words}]
        if found:
            self._source.choice(sorted(found, key=lambda each: each.pid)).kill()
        return bool(found)

    def _wait(self, process: "subprocess.Popen[bytes]", condition: Callable[[], bool], most_s: float) -> None:
        """Wait for a condition, or until the time is over; what did not come about is no fault of the tables."""
        deadline_s = time.monotonic() + most_s
        while not condition() and process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)

    def _commits(self) -> int:
        return sum(commits(self._world, table) for table in _WATCHED)

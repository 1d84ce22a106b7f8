"""The page on mending: its steps mend a pipeline that was broken in the ways that it names, with real processes."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.changes import NODE_CHANGES_TABLE
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.records import HEARTBEATS_TABLE, LOAD_REPORTS_TABLE, MEMBERSHIP_TABLE
from streaming.contracts.table import TableContract
from streaming.tables.claim import claimed
from streaming.tables.stored_table import StoredTable
from streaming.tables.table_writer import TableWriter
from tests.helpers.pipeline_world import PipelineWorld, random_report
from tests.helpers.polling import poll_until
from tests.helpers.readme import ROOT, blocks
from tests.streaming.records.test_record_streams import heartbeat

STEPS = blocks(ROOT / "docs" / "how-to" / "mend-the-pipeline.md")
DEADLINE_S = 240.0
END_S = 10.0
"""Within how many seconds SIGTERM ends the pipeline, where the machine has nothing else to do."""
PARTITION = 2
JOINED = encode_input(NodeJoined("node-1", 7, NodeRole.DATA, (), "zone-a", 2, 100, "1.0.0", 5, "5d1f0c7a"))

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1_200)]


class Pipeline:
    """A cluster's topics, and the commands of the page in a folder whose tables are those of the cluster.

    Args:
        world: the cluster.
        folder: the working directory.
        end_s: within how many seconds SIGTERM has to end a run.
    """

    def __init__(self, world: PipelineWorld, folder: Path, end_s: float) -> None:
        self.world = world
        self.folder = folder
        self._end_s = end_s

    def command(self, line: str) -> list[str]:
        """A line of the page, for this cluster."""
        program, *words = shlex.split(line)
        if program != "controlplane":
            return [program, *words]
        given = ("--cluster", self.world.cluster.name, "--bootstrap-servers", self.world.kafka.bootstrap_servers)
        return [sys.executable, "-m", "controlplane.cli", *given, "--log-format", "console", *words]

    def do(self, step: str) -> "subprocess.CompletedProcess[str]":
        """Carry out a block of the page; all its lines but the last succeed."""
        *first, last = STEPS[step].splitlines()
        for line in first:
            subprocess.run(self.command(line), cwd=self.folder, env=self._environment, check=True)
        return self._run(last)

    def refused(self) -> str:
        """What a start says that fails: one sentence, and no trace."""
        ran = self._run("controlplane pipeline run")
        assert ran.returncode == 1, ran.stderr
        lines = ran.stderr.splitlines()
        assert [line for line in lines if line.startswith(("Traceback", "\tat ", "  File"))] == []
        return lines[-1]

    @contextmanager
    def running(self, line: str = "controlplane pipeline run") -> Iterator[None]:
        """It runs; SIGTERM ends it in time, without a trace."""
        log = self.folder / "printed"
        command = [*self.command(line), "--trigger-interval-ms", "500"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment, stderr=output, start_new_session=True
            )
        try:
            poll_until(lambda: "every stream runs" in log.read_text() or process.poll() is not None, DEADLINE_S)
            assert process.poll() is None, log.read_text()
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(self._end_s) == 0, log.read_text()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed = log.read_text()
        assert "Traceback" not in printed
        assert "Exception" not in printed

    def count(self, table: TableContract) -> int:
        """The rows of a table."""
        return int(StoredTable(self.tables, table).rows(columns=[table.columns[0]]).num_rows)

    def await_rows(self, table: TableContract, count: int) -> None:
        """Wait until a table has so many rows, and no more."""
        poll_until(lambda: self.count(table) >= count, DEADLINE_S)
        assert self.count(table) == count

    def beat(self, *numbers: int) -> None:
        """Append heartbeats."""
        for number in numbers:
            self.world.send(HEARTBEATS, *heartbeat("node-1", number), partition=PARTITION)

    def report(self, count: int) -> None:
        """Append load reports, so that batches run when the pipeline is ended."""
        source = random.Random(count)
        ids = [f"kv/0x{number:08x}_0x{number + 1:08x}" for number in range(200)]
        self.world.report(*(random_report(source, "node-1", ids, number) for number in range(count)))

    def forget_heartbeats(self, before: int) -> None:
        """Let Kafka delete those before an offset."""
        place = TopicPartition(self.world.cluster.topic(HEARTBEATS), PARTITION, before)
        admin = AdminClient({"bootstrap.servers": self.world.kafka.bootstrap_servers})
        for deletion in admin.delete_records([place]).values():
            deletion.result(20)

    @property
    def tables(self) -> Path:
        """Their folder."""
        return self.folder / ".controlplane" / "delta"

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(ROOT)}

    def _run(self, line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(line),
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, make_world: Callable[[], PipelineWorld], tmp_path: Path) -> Pipeline:
    """It has read three heartbeats, a join and some load reports."""
    is_alone = request.node.get_closest_marker("alone") is not None
    made = Pipeline(make_world(), tmp_path, END_S if is_alone else DEADLINE_S)
    made.beat(0, 1, 2)
    made.world.send(MEMBERSHIP, b"node-1", JOINED)
    made.report(20)
    with made.running():
        made.await_rows(HEARTBEATS_TABLE, 3)
        made.await_rows(MEMBERSHIP_TABLE, 1)
        made.await_rows(LOAD_REPORTS_TABLE, 20)
    return made


def test_each_step_mends_what_it_is_for(pipeline: Pipeline) -> None:
    """A damaged checkpoint, a gap and a table without its log, all at once, and then one that is an older copy.

    Nothing else is lost, and nothing twice.
    """
    assert pipeline.do("check").returncode == 0
    (pipeline.tables / "_checkpoints" / MEMBERSHIP_TABLE.name / "offsets" / "0").write_bytes(b"")
    pipeline.beat(3, 4, 5)
    pipeline.forget_heartbeats(5)
    log = pipeline.tables / INTENTS / "_delta_log"
    for entry in log.iterdir():
        entry.write_bytes(b"rubbish")

    assert f"the table {pipeline.tables / INTENTS} cannot be made or read" in pipeline.refused()
    assert pipeline.do("table").returncode == 0
    assert "membership is damaged: offsets/0 is empty" in pipeline.refused()
    with claimed(pipeline.tables, threading.Event()):
        assert "another pipeline writes the tables" in pipeline.do("checkpoint").stderr
    assert "membership[" in pipeline.do("checkpoint").stdout
    assert "Kafka no longer has heartbeats[2]@3 to 4" in pipeline.refused()
    checked = pipeline.do("check")
    assert (checked.returncode, "PROBLEM heartbeats[2]@3 to 4 was not read" in checked.stdout) == (1, True)

    copy = pipeline.folder / "copy"
    shutil.copytree(pipeline.tables / MEMBERSHIP, copy)
    pipeline.world.send(MEMBERSHIP, b"node-1", JOINED)
    with pipeline.running(STEPS["accept"]):
        pipeline.await_rows(HEARTBEATS_TABLE, 4)
        pipeline.await_rows(MEMBERSHIP_TABLE, 2)
        pipeline.report(200)  # a batch is in work when it is ended
        poll_until(lambda: pipeline.count(LOAD_REPORTS_TABLE) > 20, DEADLINE_S)
    assert pipeline.count(GAPS_TABLE) == 1
    checked = pipeline.do("check")
    assert (checked.returncode, "recorded gap: heartbeats[2]@3 to 4" in checked.stdout) == (0, True), checked.stdout

    shutil.rmtree(pipeline.tables / MEMBERSHIP)
    copy.rename(pipeline.tables / MEMBERSHIP)
    assert f"the table membership in {pipeline.tables} is older than its checkpoint" in pipeline.refused()
    assert pipeline.do("checkpoint").returncode == 0
    with pipeline.running():
        pipeline.await_rows(MEMBERSHIP_TABLE, 2)
    checked = pipeline.do("check")
    assert checked.returncode == 0, checked.stdout

    assert pipeline.do("anew").returncode == 0
    with pipeline.running():
        pipeline.await_rows(HEARTBEATS_TABLE, 1)
        pipeline.await_rows(LOAD_REPORTS_TABLE, 220)


def test_a_full_disk_is_told_and_room_is_all_it_needs(pipeline: Pipeline, tmp_path: Path) -> None:
    """In one line, after the streams were tried again; with room it goes on, without losing or doubling anything."""
    small = tmp_path / "small"
    small.mkdir()
    size_kib = sum(path.stat().st_size for path in pipeline.tables.rglob("*")) // 1_024 + 1_500
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(small)], check=False)
    if mounted.returncode:
        pytest.skip("a file system of its own cannot be mounted here")
    try:
        subprocess.run(["cp", "-a", str(pipeline.tables), str(small)], check=True)
        pipeline.tables.rename(tmp_path / "before")
        pipeline.tables.symlink_to(small / "delta")
        pipeline.report(1_000)
        assert re.search("is full.*: make room", pipeline.refused())
        subprocess.run(["mount", "-o", "remount,size=1g", str(small)], check=True)
        with pipeline.running():
            pipeline.await_rows(LOAD_REPORTS_TABLE, 1_020)
        checked = pipeline.do("check")
        assert checked.returncode == 0, checked.stdout
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.alone
def test_a_table_that_takes_long_to_maintain_does_not_delay_the_end(pipeline: Pipeline) -> None:
    """SIGTERM ends the pipeline in time while files are joined: one of them is a pipe, which has no writer."""
    values = {"string": "", "array": [], "date": datetime.now(UTC).date()}
    row = {field.name: values.get(field.dataType.typeName(), 1) for field in NODE_CHANGES_TABLE.fields}
    for version in range(2):
        TableWriter(pipeline.tables, NODE_CHANGES_TABLE, "test").append([row], version)
    place = Path(DeltaTable(pipeline.tables / NODE_CHANGES_TABLE.name).file_uris()[0])
    place.unlink()
    os.mkfifo(place)
    before = ALL_TABLES[ALL_TABLES.index(NODE_CHANGES_TABLE) - 1]
    with pipeline.running("controlplane pipeline run --maintenance-interval-ms 1000"):
        poll_until(lambda: f"table={before.name}\n" in (pipeline.folder / "printed").read_text(), DEADLINE_S)


def test_steps_are_commands() -> None:
    """A block that lost its mark would not be carried out."""
    assert STEPS.keys() == {"check", "accept", "checkpoint", "table", "anew"}
    text = (ROOT / "docs" / "how-to" / "mend-the-pipeline.md").read_text(encoding="utf-8")
    assert [table.name for table in ALL_TABLES if f"`{table.name}`" not in text] == []

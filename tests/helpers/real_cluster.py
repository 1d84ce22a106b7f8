"""A cluster of real parts: controllers as processes of their own, nodes that only join and beat, readers of the log."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.inputs import encode_input
from controlplane.config import (
    DECISIONS,
    HEARTBEATS,
    MEMBERSHIP,
    ROUTING_TABLE,
    SNAPSHOTS,
    ClusterConfig,
    KafkaConfig,
)
from controlplane.core.log.decision import Decision
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeft
from controlplane.core.membership.node import NodeRole
from controlplane.core.routing.replica import RoutingTable, TableReplica
from controlplane.core.values.identifiers import Epoch
from controlplane.embedded.services import Addresses
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord, RawRecord
from controlplane.topic_reading.decision_stream import DecisionStream
from controlplane.topic_reading.foreign_records import ForeignRecords
from controlplane.topic_reading.table_follower import TableFollower, fold_record
from tests.helpers.readme import ROOT, console_commands
from tests.helpers.sources import everything_in

DEADLINE_S = 120.0
"""No promise, but what tells a hang from a busy machine: one that does other work beside lets brokers fall silent, and
what is waited for then comes when they are back."""

_POLL_MS = 100
_USUAL_SNAPSHOT_BYTES = 4_194_304


class RealCluster:
    """Controllers, nodes that send heartbeats, and queries on the log. A context manager, which ends every process."""

    def __init__(
        self,
        name: str,
        bootstrap_servers: str,
        redis_url: str,
        folder: Path,
        addresses_of: Callable[[str], Addresses] | None = None,
        controller_options: Sequence[str] = (),
        *,
        security_file: Path | None = None,
    ) -> None:
        """Create the topics, without starting a process.

        Args:
            name: the cluster's.
            bootstrap_servers: Kafka.
            redis_url: the lease store.
            folder: where outputs go.
            addresses_of: where a process of that name reaches Kafka and the lease store, if not where all do.
            controller_options: options of every controller in addition to its own.
            security_file: how processes log in to Kafka, as ``--security`` takes it; queries go without.
        """
        self.cluster = ClusterConfig(name)
        self.kafka = KafkaConfig(bootstrap_servers)
        self.redis_url = redis_url
        self.addresses_of = addresses_of or (lambda _: Addresses(bootstrap_servers, redis_url))
        self.folder = folder
        self._controller_options = controller_options
        self.security_options = ["--security", str(security_file)] if security_file else []
        self.controllers: dict[str, subprocess.Popen[bytes]] = {}
        apply_topics(bootstrap_servers, name, topic_specs(), {}, least_copies=1)
        self._writer = KafkaEventWriter(self.cluster, self.kafka, 2_500)
        self._table = TableFollower(KafkaLogReader(self.cluster, self.kafka))
        self._beating: set[str] = set()
        self._stop = threading.Event()
        self._beater = threading.Thread(target=self._beat, daemon=True)
        self._beater.start()

    def __enter__(self) -> Self:
        """The cluster itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the nodes and the controllers."""
        self._stop.set()
        self._beater.join(10)
        self._writer.close()
        self._table.close()
        for process in self.controllers.values():
            process.kill()
            process.wait(10)

    def start_controller(
        self, controller_id: str, *options: str, program: str = "controlplane.cli"
    ) -> subprocess.Popen[bytes]:
        """A controller as a user starts it; its output goes to a file beside the others."""
        addresses = self.addresses_of(controller_id)
        command = [
            *(sys.executable, "-m", program, "--cluster", self.cluster.name),
            *("--bootstrap-servers", addresses.bootstrap_servers, "--redis-url", addresses.redis_url),
            *self.security_options,
            *("controller", "run", "--controller-id", controller_id, *self._controller_options, *options),
        ]
        with self.log_of(controller_id).open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.controllers[controller_id] = process
        return process

    def log_of(self, controller_id: str) -> Path:
        """Where a controller's output is."""
        return self.folder / f"{controller_id}.log"

    def leader(self) -> str:
        """The controller that opened the last term."""
        return self.decisions()[-1].controller_id

    def stop_controller(self, controller_id: str) -> None:
        """Stop a controller by SIGTERM: it gives the lease back and ends."""
        self.controllers[controller_id].send_signal(signal.SIGTERM)
        assert self.controllers[controller_id].wait(20) == 0, self.log_of(controller_id).read_text(errors="replace")

    def kill_leader(self) -> str:
        """SIGKILL for the process that leads; returns its name."""
        name = self.leader()
        self.controllers[name].send_signal(signal.SIGKILL)
        self.controllers[name].wait(10)
        return name

    def join(self, *node_ids: str, incarnation: int = 1) -> None:
        """Nodes join, again if that was not acknowledged as an agent does, and send two heartbeats each second."""
        for node_id in node_ids:
            joined = NodeJoined(node_id, incarnation, NodeRole.DATA, (), "", 1, 0, "1", 0)
            self._send_until_acknowledged(OutgoingRecord(MEMBERSHIP, node_id.encode(), encode_input(joined)))
            self._writer.poll(0)
            self._beating.add(node_id)

    def _send_until_acknowledged(self, record: OutgoingRecord) -> None:
        """A partition without a leader takes nothing for longer than a record may wait to be sent."""

        def look(delivery: Delivery) -> None:
            if delivery.error is not None and not self._stop.is_set():
                self._send_until_acknowledged(record)

        self._writer.send(record, look)

    def leave(self, node_id: str, incarnation: int = 1) -> None:
        """Send that the node has left, and stop its heartbeats."""
        self.silence(node_id)
        self.send(MEMBERSHIP, node_id, encode_input(NodeLeft(node_id, incarnation, "test")))

    def silence(self, node_id: str) -> None:
        """A node dies."""
        self._beating.discard(node_id)

    def send(self, topic: str, key: str, value: bytes) -> None:
        """Append any bytes."""
        self._writer.send(OutgoingRecord(topic, key.encode(), value))
        self._writer.poll(0)

    def refuse_snapshots(self) -> None:
        """Let the broker take no snapshot, as a full disk would; it takes a moment until it does."""
        self._limit_snapshots(100)

    def take_snapshots(self) -> None:
        """Let the broker take them again."""
        self._limit_snapshots(_USUAL_SNAPSHOT_BYTES)

    def _limit_snapshots(self, max_bytes: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap_servers})
        change = ConfigEntry("max.message.bytes", str(max_bytes), incremental_operation=AlterConfigOpType.SET)
        topic = ConfigResource(ResourceType.TOPIC, self.cluster.topic(SNAPSHOTS), incremental_configs=[change])
        admin.incremental_alter_configs([topic])[topic].result(10)
        time.sleep(1)

    def records(self, topic: str) -> list[RawRecord]:
        """Everything committed in a topic of one partition."""
        return everything_in(KafkaLogReader(self.cluster, self.kafka), topic)

    def decisions(self) -> list[Decision]:
        """The decision log."""
        stream = DecisionStream()
        assembled = [stream.take(record) for record in self.records(DECISIONS)]
        return [decision for decision in assembled if decision is not None]

    def tables(self) -> list[RoutingTable]:
        """Every whole table that a new reader sees."""
        replica, foreign = TableReplica(), ForeignRecords(ROUTING_TABLE)
        tables = []
        for record in self.records(ROUTING_TABLE):
            table = fold_record(replica, record, foreign)
            if table is not None:
                tables.append(table)
        return tables

    def table(self) -> RoutingTable | None:
        """The newest table, by a reader that goes on where it was: to wait for one costs what changes meanwhile."""
        deadline_s = time.monotonic() + DEADLINE_S
        self._table.ask_for_end()
        while not self._table.step(_POLL_MS).ended:
            assert time.monotonic() < deadline_s, f"no whole table is read within {DEADLINE_S} s"
        return self._table.table

    def slot_leaders(self) -> set[str | None]:
        """The nodes that lead a slot in the newest table; empty before the first."""
        tables = self.tables()
        return {slot.leader for slot in tables[-1].slots} if tables else set()

    def fenced(self) -> list[str]:
        """The nodes that were ever fenced."""
        return [
            event.node_id for decision in self.decisions() for event in decision.events if isinstance(event, NodeFenced)
        ]

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the cluster, as an operator does, to its end, whatever its exit status."""
        place = ["--cluster", self.cluster.name, "--bootstrap-servers", self.kafka.bootstrap_servers]
        return subprocess.run(
            [sys.executable, "-m", "controlplane.cli", *place, "--redis-url", self.redis_url, *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def run_page(self, page: Path) -> None:
        """Run the commands on the consoles of a page, in its order; each has to succeed."""
        for words in console_commands("controlplane", page):
            ran = self.command(*words)
            assert ran.returncode == 0, f"{words}:\n{ran.stdout}\n{ran.stderr}"

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll a condition; a broker that is away counts as not yet."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not self._holds(condition):
            assert time.monotonic() < deadline_s, f"not within {DEADLINE_S} s: {what}\n{self._tails()}"
            time.sleep(0.1)

    def assert_log_is_whole(self) -> None:
        """No seq is missing or doubled, no epoch skipped, no term falls, and the newest table shows the last epoch."""
        decisions = self.decisions()
        assert [decision.seq for decision in decisions] == list(range(1, len(decisions) + 1))
        for before, after in pairwise(decisions):
            assert after.epoch - before.epoch in (0, 1)
            assert after.term >= before.term
            assert after.previous_digest == before.digest()
        # Read after the decisions, of which there may be more by now: the table may be ahead, never behind.
        assert self.tables()[-1].epoch >= decisions[-1].epoch

    def _holds(self, condition: Callable[[], bool]) -> bool:
        try:
            return condition()
        except (LogUnavailableError, IndexError):
            return False

    def _tails(self) -> str:
        tails = {name: self.log_of(name).read_text(errors="replace")[-2_000:] for name in self.controllers}
        return json.dumps(tails, indent=1)

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            for node_id in sorted(self._beating):
                beat = Heartbeat(node_id, 1, 0, Epoch(0), NodeRole.DATA)
                try:
                    self._writer.send(OutgoingRecord(HEARTBEATS, node_id.encode(), encode_input(beat)))
                except LogUnavailableError:
                    break  # the queue is full while the broker is away; the next round tries again
            self._writer.poll(0)

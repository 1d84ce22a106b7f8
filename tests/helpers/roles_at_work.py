"""The whole work of each access role, done by the real code under a login. A failure raises its message."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.bootstrap.members import node_agent, routing_client
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.decisions import DecisionAssembler, decision_key, encode_decision
from controlplane.codec.inputs import decode_input, encode_input
from controlplane.config import (
    DEAD_LETTERS,
    DECISIONS,
    INTENTS,
    LOAD_REPORTS,
    MEMBERSHIP,
    SNAPSHOTS,
    ClusterConfig,
    KafkaConfig,
)
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import Opening, open_term
from controlplane.core.deciding.observations import Observations
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined, NodeLeft
from controlplane.core.values.identifiers import Term
from controlplane.node import Access, NodeAgent, NodeLoad
from controlplane.ports import CommitOutcome, OutgoingRecord, RawRecord
from tests.helpers.sources import everything_in
from tests.helpers.table_feed import TableFeed

DEADLINE_S = 60.0
CONTROLLER_LOG = "controller.log"
FOUNDED = open_term(
    State(), Observations(), Term(1), "c1", "test", Opening(new_log=("log", ClusterPolicy()), observed_from={})
).decision
LOAD = NodeLoad(cpu=ResourceUsage(12.5, 200.0))


class RefusedError(Exception):
    """A part of the role's work was refused; the message is that part's."""


@dataclass(slots=True)
class SecuredCluster:
    """One cluster with its topics, and a reader with all rights.

    Attributes:
        name: the cluster's.
        servers: where logins are asked for.
        above: the security settings of a super user.
        redis_url: where controllers find their lease.
        folder: where outputs go.
    """

    name: str
    servers: str
    above: Mapping[str, str] = field(repr=False)
    redis_url: str = field(repr=False)
    folder: Path
    _feed: TableFeed | None = field(default=None, repr=False)

    def create_topics(self) -> None:
        """Create them as the super user."""
        apply_topics(self.servers, self.name, topic_specs(), self.above, least_copies=1)

    def as_above(self) -> KafkaConfig:
        """How the super user connects."""
        return KafkaConfig(self.servers, self.above)

    @property
    def feed(self) -> TableFeed:
        """The table, written by hand where no controller runs."""
        if self._feed is None:
            writer = KafkaTransactionalWriter(ClusterConfig(self.name), self.as_above())
            self._feed = TableFeed(writer, log_id=FOUNDED.log_id)
        return self._feed

    def found_log(self) -> None:
        """Write a log's first decision, in which nothing is decided yet."""
        writer = KafkaTransactionalWriter(ClusterConfig(self.name), self.as_above())
        writer.open()
        parts = encode_decision(FOUNDED)
        outcome = writer.commit([OutgoingRecord(DECISIONS, decision_key(FOUNDED.seq), part, 0) for part in parts])
        assert outcome is CommitOutcome.COMMITTED
        writer.close()

    def records(self, topic: str) -> list[RawRecord]:
        """Everything that is committed in a topic."""
        return everything_in(KafkaLogReader(ClusterConfig(self.name), self.as_above()), topic)

    def write(self, topic: str, key: str, value: bytes) -> None:
        """Append a record as the super user."""
        writer = KafkaEventWriter(ClusterConfig(self.name), self.as_above(), 20_000)
        writer.send(OutgoingRecord(topic, key.encode(), value))
        assert writer.flush(20_000) == 0
        writer.close()

    def controller(self, login: Path, *options: str) -> list[str]:
        """The command line of a controller with the security settings in a file."""
        return [*self.command_line(login), "controller", "run", "--controller-id", "c1", *options]

    def command_line(self, login: Path) -> list[str]:
        """The beginning of each command line."""
        return [
            *(sys.executable, "-m", "controlplane.cli", "--cluster", self.name, "--bootstrap-servers", self.servers),
            *("--security", str(login), "--connect-timeout", "5"),
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of each command: the only place for an address with a password."""
        return {**os.environ, "CONTROLPLANE_REDIS_URL": self.redis_url}


def node_works(cluster: SecuredCluster, security: Mapping[str, str], lines: list[str]) -> None:
    """A new node joins, sends heartbeats and reports, and follows the table; ``lines`` are its log lines."""
    reports = len(cluster.records(LOAD_REPORTS))
    joins = len(_joins(cluster))
    name = f"n{joins}"
    # A former incarnation: without one in an empty topic the node has nothing to read there.
    cluster.write(MEMBERSHIP, name, encode_input(NodeLeft(name, 1, "stopped")))
    if not cluster.feed.epoch:
        cluster.feed.commit()  # a node does not join before there is a table
    agent = node_agent(
        cluster.name,
        cluster.servers,
        name,
        load_source=lambda: LOAD,
        load_interval_ms=100,
        security=security,
    ).start()
    try:
        _wait(agent, lines, lambda: len(_joins(cluster)) > joins)
        cluster.feed.node(name, incarnation=_joins(cluster)[-1].incarnation).slot(0, name).commit()
        # Not before a heartbeat was acknowledged and the table read to its end after that.
        _wait(agent, lines, lambda: agent.ownership(0).access is not Access.MOVED)
        _wait(agent, lines, lambda: len(cluster.records(LOAD_REPORTS)) > reports)
    finally:
        agent.stop(drain=False)


def reader_works(cluster: SecuredCluster, security: Mapping[str, str]) -> None:
    """A routing client reads a table and routes by it."""
    with routing_client(cluster.name, cluster.servers, security=security) as client:
        client.wait_for(timeout_ms=round(DEADLINE_S * 1_000))
        assert client.route("user-1").node_id


def operator_works(cluster: SecuredCluster, login: Path, security: Mapping[str, str]) -> None:
    """An operator reads nodes, table and log, sends an intent, and reads the inputs as an audit does."""
    for words in (
        ("nodes", "list"),
        ("table", "show"),
        ("log", "show"),
        ("snapshot", "list"),
        ("audit",),
        ("table", "refresh", "--wait", "0"),
    ):
        ran = subprocess.run(
            [*cluster.command_line(login), *words],
            env=cluster.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        if ran.returncode and "there is no snapshot" not in ran.stderr:
            raise RefusedError(f"{words}: {ran.stderr}")
    reader = KafkaLogReader(ClusterConfig(cluster.name), KafkaConfig(cluster.servers, security))
    try:
        reader.assign(reader.start_offsets(INTENTS))
        while not reader.poll(100, 100).records:
            pass
    finally:
        reader.close()


def controller_works(cluster: SecuredCluster, login: Path) -> None:
    """A controller leads: it answers an intent, publishes a table, and writes a snapshot and a dead letter."""
    with running_controller(cluster, login) as refused:
        asked_at_ns = time.monotonic_ns()
        intents = [
            Intent(f"snapshot-{asked_at_ns}", IntentKind.TAKE_SNAPSHOT.value, "above"),
            # A new name each time: a topic that shows the state already would not have to be written to.
            Intent(f"at-{asked_at_ns}", IntentKind.CREATE_NAMESPACE.value, "above", {"namespace": f"at-{asked_at_ns}"}),
        ]
        letters, parts = (len(cluster.records(topic)) for topic in (DEAD_LETTERS, SNAPSHOTS))
        for intent in intents:
            cluster.write(INTENTS, intent.intent_id, encode_input(intent))
        cluster.write(MEMBERSHIP, "n1", b"no record of ours")
        deadline = time.monotonic() + DEADLINE_S
        while not (
            all(answered(cluster, intent.intent_id) for intent in intents)
            and len(cluster.records(DEAD_LETTERS)) > letters
            and len(cluster.records(SNAPSHOTS)) > parts
            and "snapshot written" in (cluster.folder / CONTROLLER_LOG).read_text("utf-8", "replace")
        ):
            said = refused()
            if said:
                raise RefusedError(said)
            assert time.monotonic() < deadline, "the controller does nothing, and says nothing of why"
            time.sleep(0.2)


@contextmanager
def running_controller(cluster: SecuredCluster, login: Path, *options: str) -> Iterator[Callable[[], str]]:
    """A controller's process. Returns a function for the refused right, the reason of its end, or an empty text."""
    output = cluster.folder / CONTROLLER_LOG
    with output.open("wb") as file:
        process = subprocess.Popen(
            cluster.controller(login, *options),
            env=cluster.environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:

        def refused() -> str:
            said = output.read_text(encoding="utf-8", errors="replace")
            return said if process.poll() is not None or "does not allow" in said else ""

        yield refused
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def answered(cluster: SecuredCluster, intent_id: str) -> bool:
    """Whether the decision log has an answer to an intent."""
    assembler = DecisionAssembler()
    decisions = [assembler.add(record.value or b"") for record in cluster.records("decisions")]
    events = [event for decision in decisions if decision is not None for event in decision.events]
    return any(isinstance(event, IntentAnswered) and event.intent_id == intent_id for event in events)


class Listener(logging.Handler):
    """Keeps the lines that a library logs with the standard library."""

    def __init__(self, lines: list[str]) -> None:
        """Add to these lines."""
        super().__init__()
        self._lines = lines
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        with self._guard:
            self._lines.append(record.getMessage())


def _joins(cluster: SecuredCluster) -> list[NodeJoined]:
    payloads = [decode_input(MEMBERSHIP, record).payload for record in cluster.records(MEMBERSHIP)]
    return [payload for payload in payloads if isinstance(payload, NodeJoined)]


def _wait(agent: NodeAgent, lines: list[str], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        agent.check()
        refused = [line for line in lines if "does not allow" in line]
        if refused:
            raise RefusedError(refused[0])
        assert time.monotonic() < deadline, "the node does nothing, and says nothing of why"
        time.sleep(0.1)

"""Garbage in every topic of a running cluster: nobody ends, nothing is lost, the table is whole again by itself."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.bootstrap.members import node_agent, routing_client
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.decisions import encode_decision
from controlplane.codec.outputs import decode_dead_letter
from controlplane.codec.table import encode_row
from controlplane.config import DEAD_LETTERS, DECISIONS, MEMBERSHIP, ROUTING_TABLE, SNAPSHOTS
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker
from controlplane.core.slots.table import Slot
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import InvalidInputError
from controlplane.inspection.readers import read_routing_table
from controlplane.node import NodeAgent
from controlplane.routing import RoutingClient
from tests.helpers.readme import ROOT
from tests.helpers.real_cluster import RealCluster
from tests.helpers.sources import source_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMPACTED = (ROUTING_TABLE, SNAPSHOTS)
"""Kafka takes no record without a key there."""
VALUES = (b"", b"{}", b"\x00\x1b[2J\n", b"\xc3\x01", b"\xc3\x01" + b"12345678" + b"body", b"x" * 900_000, None)
KEYS = (None, b"", b"\xff\xfe", b"main/slot/1", b"\x00\x1b]0;\x07", b"n1")


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A leader that writes snapshots, a standby, and two nodes."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1", "--snapshots", "after_decisions=2")
        running.start_controller("c2", "--snapshots", "after_decisions=2")
        running.join("n1", "n2")
        running.wait_until(lambda: running.slot_leaders() == {"n1", "n2"}, "the first table")
        yield running


@pytest.fixture
def agent(cluster: RealCluster) -> Iterator[NodeAgent]:
    """A node of the public agent, which owns slots."""
    made = node_agent(cluster.cluster.name, cluster.kafka.bootstrap_servers, "agent", registry=CollectorRegistry())
    made.start()
    cluster.wait_until(lambda: "agent" in cluster.slot_leaders(), "the agent's slots")
    yield made
    made.stop(timeout_ms=1_000)


@pytest.fixture
def client(cluster: RealCluster) -> Iterator[RoutingClient]:
    """A client that has read the table."""
    with routing_client(cluster.cluster.name, cluster.kafka.bootstrap_servers, registry=CollectorRegistry()) as made:
        made.wait_for()
        yield made


def throw_garbage(cluster: RealCluster) -> None:
    """Write garbage into every topic, and into log and table what looks like theirs."""
    producer = Producer({"bootstrap.servers": cluster.kafka.bootstrap_servers, "linger.ms": 0})
    for spec in topic_specs():
        for key in KEYS:
            if key is not None or spec.name not in COMPACTED:
                for value in VALUES:
                    producer.produce(cluster.cluster.topic(spec.name), value=value, key=key)
        assert producer.flush(30) == 0
    marker = EpochMarker(Term(9), Epoch(99), Seq(99), "another", 7, "", "0" * 16)
    last = cluster.decisions()[-1]
    lookalikes = {
        ROUTING_TABLE: [
            (b"main/slot/2", encode_row(Slot(2, "intruder", (), Epoch(1)))),
            (b"main/slot/3", encode_row(Slot(4, "intruder", (), Epoch(1)))),
            (MARKER_KEY.encode(), encode_row(marker)),
            (MARKER_KEY.encode(), b"nonsense"),
        ],
        DECISIONS: [(b"1", encode_decision(replace(last, log_id="another"))[0])],
    }
    for topic, records in lookalikes.items():
        for key, value in records:
            producer.produce(cluster.cluster.topic(topic), value=value, key=key, partition=0)
    assert producer.flush(30) == 0


def shows_every_row(cluster: RealCluster) -> bool:
    """Whether a reader that begins now finds the table of the last decision, and no other key in the topic."""
    with closing(KafkaLogReader(cluster.cluster, cluster.kafka)) as reader:
        table = read_routing_table(source_of(reader))
    live = {record.key: record.value for record in cluster.records(ROUTING_TABLE)}
    held = {key for key, value in live.items() if value is not None}
    rows = len(table.slots) + len(table.nodes) + len(table.bundles) + len(table.namespaces) + 1 if table else 0
    return table is not None and table.epoch == cluster.decisions()[-1].epoch and len(held) == rows + 1


def command(cluster: RealCluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of a user."""
    place = ["--cluster", cluster.cluster.name, "--bootstrap-servers", cluster.kafka.bootstrap_servers]
    return subprocess.run(
        [sys.executable, "-m", "controlplane.cli", *place, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_garbage_in_every_topic_ends_nobody_and_loses_nothing(
    cluster: RealCluster, agent: NodeAgent, client: RoutingClient
) -> None:
    """The leader leads on under its term, the table is repaired, a node joins, another leader takes over."""
    before = cluster.decisions()[-1]
    throw_garbage(cluster)
    cluster.wait_until(lambda: shows_every_row(cluster), "the table to be repaired")
    repaired = cluster.decisions()[-1]
    assert (repaired.term, repaired.controller_id) == (before.term, before.controller_id)
    client.wait_for(lambda table: table.epoch >= repaired.epoch)
    assert "intruder" not in {slot.leader for slot in client.wait_for().slots}

    cluster.join("n3")
    cluster.wait_until(lambda: cluster.slot_leaders() == {"n1", "n2", "n3", "agent"}, "a join after the garbage")
    joined = cluster.decisions()[-1].epoch
    assert client.wait_for(lambda table: table.epoch >= joined).nodes["n3"].status.lives
    throw_garbage(cluster)
    killed = cluster.kill_leader()
    cluster.wait_until(lambda: cluster.leader() != killed, "the standby to take over")
    cluster.wait_until(lambda: shows_every_row(cluster), "the table under the next leader")
    cluster.start_controller(killed)
    cluster.join("n4")
    cluster.wait_until(lambda: "n4" in cluster.slot_leaders(), "a join under the next leader")
    client.wait_for(lambda table: "n4" in table.nodes)

    assert cluster.fenced() == []
    assert agent.table is not None
    cluster.assert_log_is_whole()
    assert all(process.poll() is None for process in cluster.controllers.values())
    for arguments in (["log", "verify"], ["log", "show"], ["nodes", "list"], ["table", "show"], ["snapshot", "list"]):
        ran = command(cluster, *arguments)
        assert ran.returncode == 0, ran.stderr
    audited = json.loads(command(cluster, "audit", "--format", "json").stdout)
    assert audited["differences"] == []
    assert audited["retaken"] == len(cluster.decisions())
    refused = [letter for letter in letters(cluster) if letter.topic == MEMBERSHIP]
    assert len(refused) >= len(KEYS) * len(VALUES)


def letters(cluster: RealCluster) -> Iterator[DeadLetter]:
    """The dead letters between the garbage in their topic."""
    for record in cluster.records(DEAD_LETTERS):
        try:
            yield decode_dead_letter(record.value or b"")
        except InvalidInputError:
            continue

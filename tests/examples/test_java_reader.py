"""A consumer in Java, written with a Kafka client and an Avro library only, agrees with ours at every epoch."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.config import ROUTING_TABLE
from controlplane.core.routing.replica import RoutingTable
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.resources import resource_path
from tests.helpers.compaction import churn_until, compact_soon
from tests.helpers.java_reader import JavaReader
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEYS = ("a", "user-3", "user-17", "tenant/eu-1")
LAST_EPOCH_WITHIN_S = 120


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers, whose broker compacts as often as it can."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        yield cluster


@pytest.fixture
def java_reader(tmp_path: Path) -> JavaReader:
    """The example, compiled."""
    folder = tmp_path / "classes"
    folder.mkdir()
    return JavaReader(folder)


def test_java_rebuilds_the_same_table_at_every_epoch_and_after_compaction(
    java_reader: JavaReader, cluster: RealCluster
) -> None:
    """No SDK is needed to route: rows, marker and digest say everything, in any language."""
    cluster.start_controller("c1")
    cluster.start_controller("c2")
    live_through_kills(cluster)
    tables = cluster.tables()
    assert len(tables) >= 10
    assert [table.epoch for table in tables] == list(range(1, len(tables) + 1))
    theirs, routes = read_by_java(java_reader, cluster, tables[-1].epoch)
    assert theirs[: len(tables)] == [line_of(table) for table in tables]
    tables = cluster.tables()
    assert routes == routes_of(tables[len(theirs) - 1])

    records = len(cluster.records(ROUTING_TABLE))
    compact_soon(cluster)
    churn_until(cluster, "n8", lambda: len(cluster.records(ROUTING_TABLE)) < records)
    before = cluster.tables()
    assert len(before) < before[-1].epoch, "compaction left every epoch readable: the test shows nothing"
    theirs, routes = read_by_java(java_reader, cluster, before[-1].epoch)
    ours = {line_of(table): table for table in (*before, *cluster.tables())}
    assert set(theirs) <= set(ours), "compaction goes on, so Java may see fewer epochs than we did, never other ones"
    assert routes == routes_of(ours[theirs[-1]])


def live_through_kills(cluster: RealCluster) -> None:
    """Ten epochs and more: joins, dead nodes, a dead leader."""
    nodes = [f"n{index}" for index in range(1, 8)]
    for node_id in nodes:
        cluster.join(node_id)
        wait_for_leader_of_slots(cluster, node_id)
    cluster.silence("n1")
    cluster.wait_until(lambda: "n1" not in cluster.slot_leaders(), "n1 is fenced")
    cluster.silence("n2")
    cluster.kill_leader()
    cluster.wait_until(lambda: "n2" not in cluster.slot_leaders(), "n2 is fenced by the new leader")
    cluster.join("n8")
    wait_for_leader_of_slots(cluster, "n8")


def wait_for_leader_of_slots(cluster: RealCluster, node_id: str) -> None:
    """Wait until a node leads slots: one epoch for each join."""
    cluster.wait_until(lambda: node_id in cluster.slot_leaders(), f"{node_id} leads slots")


def read_by_java(java_reader: JavaReader, cluster: RealCluster, last_epoch: int) -> tuple[list[str], list[str]]:
    """What the example prints: a line for each epoch up to the end of the topic, and one for each key."""
    arguments = [
        *(cluster.kafka.bootstrap_servers, cluster.cluster.topic(ROUTING_TABLE)),
        *(str(resource_path("schemas")), str(last_epoch), str(LAST_EPOCH_WITHIN_S), *KEYS),
    ]
    done = java_reader.run("RoutingTableReader", arguments, LAST_EPOCH_WITHIN_S + 60)
    assert done.returncode == 0, done.stderr[-2_000:]
    lines = done.stdout.splitlines()
    return lines[: -len(KEYS)], lines[-len(KEYS) :]


def routes_of(table: RoutingTable) -> list[str]:
    """Where our client sends the keys, in the example's words."""
    routes = []
    for key in KEYS:
        slot = table.slot_for(key)
        assert slot.leader is not None
        addresses = ",".join(f"{each.name}={each.host}:{each.port}" for each in table.nodes[slot.leader].addresses)
        routes.append(f"route {key} {slot.slot_id} {slot.leader} {addresses}")
    return routes


def line_of(table: RoutingTable) -> str:
    """The same line, from what our client says."""
    slots = "".join(":".join([str(slot.slot_id), slot.leader or "", *slot.followers]) + ";" for slot in table.slots)
    hashed = hashlib.sha256(slots.encode()).hexdigest()
    rows = 1 + len(table.slots) + len(table.nodes) + len(table.bundles) + len(table.namespaces)
    return f"{table.epoch} {table.term} {table.digest} {rows} {hashed}"

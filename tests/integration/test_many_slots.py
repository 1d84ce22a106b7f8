"""Nodes that hold very many slots, on a real broker with a real controller: what the death of one of them costs."""

import time
from pathlib import Path

import pytest

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.codec.inputs import MAX_RECORD_BYTES
from controlplane.config import HEARTBEATS
from controlplane.core.routing.replica import RoutingTable
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.real_cluster import RealCluster
from tests.helpers.sources import everything_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3", "n4", "n5")
SLOT_COUNT = 32_768
SILENCE_LIMIT_S = 2.5


def replicas_held(table: RoutingTable) -> dict[str, int]:
    """The number of replicas of each node."""
    held = dict.fromkeys(NODES, 0)
    for slot in table.slots:
        for node_id in slot.replicas:
            held[node_id] += 1
    return held


def test_a_death_among_nodes_with_very_many_slots_costs_one_node(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """Its heirs take 3,000 replicas more each and stay: neither a size nor a time grows with what they hold."""
    options = ("--policy", f"slot_count={SLOT_COUNT}", "--policy", "replica_count=2")
    with (
        RealCluster(
            cluster_name,
            kafka_broker.bootstrap_servers,
            valkey_server.redis_url,
            tmp_path,
            controller_options=options,
        ) as cluster,
        NodeProcesses(cluster) as nodes,
    ):
        for controller_id in ("c1", "c2"):
            cluster.start_controller(controller_id)
        for name in NODES:
            nodes.start(name)
        even = 2 * SLOT_COUNT // len(NODES)
        cluster.wait_until(lambda: min(replicas_held(cluster.tables()[-1]).values()) >= even, "an even table")
        nodes.kill("n2")
        heirs = dict.fromkeys(NODES, 2 * SLOT_COUNT // (len(NODES) - 1)) | {"n2": 0}
        cluster.wait_until(lambda: replicas_held(cluster.tables()[-1]) == heirs, "a table without the dead node")
        beats = everything_in(KafkaLogReader(cluster.cluster, cluster.kafka), HEARTBEATS)
        assert max(len(record.value or b"") for record in beats) < MAX_RECORD_BYTES / 5
        time.sleep(2 * SILENCE_LIMIT_S)  # an heir that ended, or that is not heard, is fenced within the limit
        assert cluster.fenced() == ["n2"]
        assert {name: process.poll() for name, process in nodes.running.items()} == dict.fromkeys(nodes.running)
        cluster.assert_log_is_whole()

"""The control plane on three real brokers, of which one is killed or paused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.config import DECISIONS
from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.partition_leaders import PartitionLeaders
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def serving(
    kafka_cluster: EmbeddedKafkaCluster, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """Two controllers and four nodes that share the slots, on three brokers."""
    with RealCluster(cluster_name, kafka_cluster.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        cluster.start_controller("c1")
        cluster.start_controller("c2")
        cluster.join(*NODES)
        cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "the first table")
        yield cluster


def takes_up(cluster: RealCluster, node_id: str) -> None:
    """A new node gets slots: decisions are committed, and readers see them."""
    cluster.join(node_id)
    cluster.wait_until(lambda: node_id in cluster.slot_leaders(), f"a table with {node_id}")


def test_decisions_go_on_when_the_broker_that_leads_them_is_killed(
    serving: RealCluster, kafka_cluster: EmbeddedKafkaCluster
) -> None:
    """One broker may always be missing: another one leads, and no decision is lost, neither there nor back."""
    leaders, decisions = PartitionLeaders(kafka_cluster.bootstrap_servers), serving.cluster.topic(DECISIONS)
    killed = leaders.leader(decisions)
    kafka_cluster.brokers[killed].kill()
    takes_up(serving, "n5")
    assert leaders.leader(decisions) not in {-1, killed}
    kafka_cluster.brokers[killed].start()
    leaders.wait_until_in_sync()
    leaders.move_leader(decisions, killed)
    takes_up(serving, "n6")
    serving.assert_log_is_whole()


def test_decisions_go_on_while_a_broker_is_paused_and_after_it_resumed(
    serving: RealCluster, kafka_cluster: EmbeddedKafkaCluster
) -> None:
    """A paused broker wakes believing that it leads; what it missed is not lost, and nothing of it is believed."""
    leaders, decisions = PartitionLeaders(kafka_cluster.bootstrap_servers), serving.cluster.topic(DECISIONS)
    paused = leaders.leader(decisions)
    kafka_cluster.brokers[paused].pause()
    takes_up(serving, "n5")
    kafka_cluster.brokers[paused].resume()
    takes_up(serving, "n6")
    leaders.wait_until_in_sync()
    serving.assert_log_is_whole()

"""The script of ``python -m tests.kills``, two repetitions: one dead node, one dead leader."""

from pathlib import Path

import pytest

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster
from tests.kills.cluster import KvCluster
from tests.kills.killing import repeat


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.timeout(300)
def test_nothing_acknowledged_is_lost_when_a_node_and_the_leader_die(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """A SIGKILL on a node and one on the leader: no epoch is lost, readers agree, every acknowledged value is there."""
    real = RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path)
    with KvCluster(real, controllers=2, nodes=3, rate_per_s=50, history=[]) as cluster:
        kinds = [repetition.kind for repetition in repeat(cluster, 2)]
    assert kinds == ["node", "leader"]

"""The smallest size of ``python -m tests.kills --brokers 3 --controllers-apart``: a death alone and with the leader.

Times are not judged here, because a machine that does other work beside breaks them. What is judged does not depend on
them: no other leader while the leader lives, nothing lost, and no request given up while brokers are restarted.
"""

from pathlib import Path

import pytest

from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster
from tests.kills.broker_deaths import kill_brokers, restart_brokers
from tests.kills.cluster import KvCluster

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_dead_broker_costs_its_session_and_no_leader(
    valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """Then the leader dies with one, and at last each broker is restarted under load."""
    with EmbeddedKafkaCluster(tmp_path / "kafka", controllers_apart=True) as kafka:
        real = RealCluster(cluster_name, kafka.bootstrap_servers, valkey_server.redis_url, tmp_path)
        with KvCluster(real, controllers=3, nodes=3, rate_per_s=50, history=[]) as cluster:
            (alone,) = kill_brokers(cluster, kafka, 1, with_leader=False)
            (together,) = kill_brokers(cluster, kafka, 1, with_leader=True)
            restarted = restart_brokers(cluster, kafka)
    assert not alone.leader_changed, alone
    assert together.leader_changed, together
    assert together.first_commit_ms > 0
    assert [each.failed for each in (alone.counts, together.counts, restarted)] == [0, 0, 0]

"""The audit on real Kafka, beside a live cluster whose leaders were killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.membership.events import NodeFenced
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.readme import ROOT
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """Two controllers, and four nodes that share the slots."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1")
        running.start_controller("c2")
        running.join(*NODES)
        running.wait_until(lambda: running.slot_leaders() == set(NODES), "the first table")
        yield running


def audit(cluster: RealCluster) -> dict[str, object]:
    """What the command says."""
    place = ["--cluster", cluster.cluster.name, "--bootstrap-servers", cluster.kafka.bootstrap_servers]
    ran = subprocess.run(
        [sys.executable, "-m", "controlplane.cli", *place, "audit", "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode in (0, 1), ran.stderr
    document: dict[str, object] = json.loads(ran.stdout)
    return document


def test_every_decision_of_several_leaders_is_taken_again(cluster: RealCluster) -> None:
    """A warm standby takes over, a controller that was started cold does, and a node dies together with a leader."""
    killed = cluster.kill_leader()
    cluster.silence("n4")
    cluster.wait_until(lambda: cluster.slot_leaders() == {"n1", "n2", "n3"}, "the node that died with the leader")
    cluster.start_controller(killed)
    cluster.join("n5")
    cluster.wait_until(lambda: "n5" in cluster.slot_leaders(), "a join")
    cluster.kill_leader()
    cluster.silence("n5")
    cluster.wait_until(lambda: cluster.slot_leaders() == {"n1", "n2", "n3"}, "the same under the third leader")
    document = audit(cluster)
    assert document["differences"] == []
    assert document["followed"] == []
    decisions = cluster.decisions()
    assert document["retaken"] == len(decisions) >= 6
    assert decisions[-1].term >= 3
    assert sum(isinstance(event, NodeFenced) for each in decisions for event in each.events) == 2

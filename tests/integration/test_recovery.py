"""Real controllers that write snapshots to a real Kafka, die, and are followed by others that begin from them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as KafkaPosition
from confluent_kafka.admin import AdminClient

from controlplane.bootstrap.connections import open_source
from controlplane.config import DECISIONS
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.inspection.snapshots import CheckedSnapshot, read_snapshots
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3")
SOON = ("--snapshots", "after_decisions=1")


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        yield running


def snapshots(cluster: RealCluster) -> list[CheckedSnapshot]:
    """The snapshots that a controller would begin from, newest first."""
    source = open_source(cluster.cluster, cluster.kafka)
    try:
        return [checked for checked in read_snapshots(source) if not checked.problem]
    finally:
        source.close()


def newest_seq(cluster: RealCluster) -> int:
    """Of the newest good snapshot; 0 if there is none."""
    headers = [checked.stored.header for checked in snapshots(cluster)]
    return headers[0].seq if headers and headers[0] else 0


def test_a_controller_begins_from_a_snapshot_where_the_beginning_of_the_log_is_gone(cluster: RealCluster) -> None:
    """Nothing before the snapshot can have been read: the broker has no such record any more."""
    cluster.start_controller("c1", *SOON)
    cluster.join(*NODES)
    cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "the first table")
    last = cluster.decisions()[-1]
    cluster.wait_until(lambda: newest_seq(cluster) == cluster.decisions()[-1].seq, "a snapshot of the last decision")
    cluster.wait_until(lambda: len(snapshots(cluster)) <= 2, "older snapshots to be removed")
    cluster.kill_leader()
    header = snapshots(cluster)[0].stored.header
    assert header is not None
    place = KafkaPosition(cluster.cluster.topic(DECISIONS), 0, header.last_decision_offset)
    admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap_servers})
    admin.delete_records([place])[KafkaPosition(place.topic, 0)].result(10)
    assert cluster.decisions()[0].seq == header.seq
    cluster.start_controller("c2", *SOON)
    cluster.wait_until(lambda: cluster.decisions()[-1].controller_id == "c2", "the next leader")
    assert "beginning from a snapshot" in cluster.log_of("c2").read_text()
    assert cluster.decisions()[-1].log_id == last.log_id
    cluster.join("n4")
    cluster.wait_until(lambda: cluster.slot_leaders() == {*NODES, "n4"}, "a join under the next leader")
    assert cluster.fenced() == []
    cluster.wait_until(lambda: newest_seq(cluster) == cluster.decisions()[-1].seq, "the next leader's snapshot")


def test_a_broker_that_takes_no_snapshot_stops_nobody(cluster: RealCluster) -> None:
    """As a full disk would: decisions go on, it is said aloud, and later a snapshot is written after all."""
    cluster.start_controller("c1", *SOON)
    cluster.wait_until(lambda: newest_seq(cluster) > 0, "the first snapshot")
    cluster.refuse_snapshots()
    cluster.join(*NODES)
    cluster.wait_until(lambda: cluster.slot_leaders() == set(NODES), "a table in spite of it")
    cluster.wait_until(lambda: "snapshot not written, retrying later" in cluster.log_of("c1").read_text(), "a warning")
    before = newest_seq(cluster)
    assert before < cluster.decisions()[-1].seq
    cluster.take_snapshots()
    cluster.wait_until(lambda: newest_seq(cluster) == cluster.decisions()[-1].seq, "a snapshot after all")
    assert {decision.term for decision in cluster.decisions()} == {1}
    cluster.assert_log_is_whole()

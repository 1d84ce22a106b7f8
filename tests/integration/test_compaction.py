"""A reader that lags while a real broker compacts the routing table, and removes the tombstones."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.config import ROUTING_TABLE
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.compaction import churn_until, compact_soon
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NODES = ("n1", "n2", "n3")


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A cluster on the shared servers, whose broker compacts as often as it can."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as cluster:
        yield cluster


def read_to_end(follower: TableFollower) -> None:
    """Show the newest table; the end that counts is one that the broker was asked for now."""
    follower.fetch_anew()
    while not follower.step(100).ended:
        pass


def test_a_reader_that_lags_over_a_compaction_shows_no_row_too_many(cluster: RealCluster) -> None:
    """A node has left, and nothing in the topic says so any more: the digest does, and the reader begins again."""
    cluster.start_controller("c1")
    cluster.join(*NODES, "n9")
    cluster.wait_until(lambda: "n9" in cluster.slot_leaders(), "the first table")
    with closing(TableFollower(KafkaLogReader(cluster.cluster, cluster.kafka))) as lagging:
        read_to_end(lagging)
        assert lagging.table is not None
        assert "n9" in lagging.table.nodes
        cluster.leave("n9")
        cluster.wait_until(lambda: "n9" not in cluster.tables()[-1].nodes, "n9 is gone")
        compact_soon(cluster)
        churn_until(cluster, "n3", lambda: not knows(cluster, "n9"))
        read_to_end(lagging)
        assert lagging.table is not None
        assert lagging.table.nodes.keys() == set(NODES)
        assert lagging.rebuilds == 1
        newest = cluster.tables()[-1]
        assert (lagging.table.epoch, lagging.table.digest) == (newest.epoch, newest.digest)


def knows(cluster: RealCluster, node_id: str) -> bool:
    """Whether any record of the table's topic has to do with a node, its tombstone included."""
    time.sleep(0.2)
    return any(node_id.encode() in (record.key or b"") for record in cluster.records(ROUTING_TABLE))

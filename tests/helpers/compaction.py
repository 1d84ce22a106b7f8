"""Makes a real broker compact the routing table while a test waits."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from controlplane.config import ROUTING_TABLE
from tests.helpers.real_cluster import RealCluster

CLEANING: Final[Mapping[str, str]] = {"log_cleaner_backoff_ms": "100", "log_segment_delete_delay_ms": "100"}
"""Settings of a broker that compacts as often as it can."""
_DEADLINE_S: Final = 90.0
_SEGMENT_S: Final = 1.0


def compact_soon(cluster: RealCluster) -> None:
    """Lower the settings that keep fresh rows; the controllers that run have checked their promises already."""
    wanted = {
        "min.compaction.lag.ms": "0",
        "segment.ms": f"{_SEGMENT_S * 1_000:.0f}",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "0",
    }
    changes = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()]
    name = cluster.cluster.topic(ROUTING_TABLE)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": cluster.kafka.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(10)


def churn_until(cluster: RealCluster, node_id: str, condition: Callable[[], bool]) -> None:
    """New epochs, by a node that joins again and again, roll segments: that lets the cleaner at the old ones."""
    deadline_s = time.monotonic() + _DEADLINE_S
    incarnation = 2
    while not condition():
        assert time.monotonic() < deadline_s, "Kafka did not compact the topic in time"
        cluster.join(node_id, incarnation=incarnation)
        incarnation += 1
        time.sleep(1.2 * _SEGMENT_S)

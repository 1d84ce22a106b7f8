"""Nodes that hold very many slots, on a real broker with a real controller: what the death of one of them costs."""

from pathlib import Path

import pytest

from controlplane.codec.inputs import MAX_RECORD_BYTES
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.real_cluster import RealCluster
from tests.kills.many_slots import kill_one_of_five, options_for

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]

SLOT_COUNT = 16_384
"""With 32,768 on two cores, an heir is sometimes silent for longer than the limit while it takes over its share."""


def test_a_death_among_nodes_with_very_many_slots_costs_one_node(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> None:
    """Its heirs take 1,600 replicas more each and stay: neither a size nor a time grows with what they hold."""
    with RealCluster(
        cluster_name,
        kafka_broker.bootstrap_servers,
        valkey_server.redis_url,
        tmp_path,
        controller_options=options_for(SLOT_COUNT),
    ) as cluster:
        death = kill_one_of_five(cluster, SLOT_COUNT)
    assert death.largest_heartbeat_bytes < MAX_RECORD_BYTES / 5
    assert (death.fenced, death.ended) == (["n2"], [])

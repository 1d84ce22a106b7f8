"""A few faults of ``python -m tests.chaos``, one of each sort, on real processes."""

import random
from pathlib import Path

import pytest

from examples.kv.client import Acknowledged
from tests.chaos.__main__ import SNAPSHOTS, lines_of
from tests.chaos.faults import FaultKind, Injector
from tests.chaos.parts import ChaosParts
from tests.chaos.run import run
from tests.helpers.real_cluster import RealCluster
from tests.kills.cluster import KvCluster

KINDS = [
    FaultKind.LEADER_AND_NODE_KILLED,
    FaultKind.LEADER_PAUSED,
    FaultKind.LEADER_WITHOUT_KAFKA,
    FaultKind.LEASE_STORE_EMPTIED,
    FaultKind.NODE_WITHOUT_KAFKA,
    FaultKind.KAFKA_PAUSED,
    FaultKind.SNAPSHOTS_REFUSED,
]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_no_fault_breaks_a_promise(cluster_name: str, tmp_path: Path) -> None:
    """The zombie, partitions, a lease store without memory, a frozen broker, no room for snapshots: all stays whole."""
    history: list[Acknowledged] = []
    with ChaosParts(tmp_path, ["c1", "c2", "c3", "n1", "n2", "n3"]) as parts:
        real = RealCluster(
            cluster_name,
            parts.bootstrap_servers,
            parts.valkey.redis_url,
            tmp_path,
            parts.addresses_of,
            SNAPSHOTS,
        )
        with KvCluster(real, controllers=3, nodes=3, rate_per_s=50, history=history) as cluster:
            report = run(Injector(parts, cluster, random.Random(1)), cluster, history, KINDS, lambda _: None)
    told = "\n".join(lines_of(report))
    assert not report.broken, told
    assert report.history.linearizable, told
    assert report.history.writes > 100
    assert report.lost_or_doubled == 0
    assert report.faults.total() == len(KINDS)

"""A few faults of ``python -m tests.chaos --brokers 3``, one of each sort, on real brokers."""

import random
from pathlib import Path

import pytest

from examples.kv.client import Acknowledged
from tests.chaos.__main__ import SNAPSHOTS, lines_of
from tests.chaos.broker_faults import BROKER_WEIGHTS, WRONG_CLOCKS, BrokerFaultKind, BrokerInjector
from tests.chaos.broker_parts import BrokerParts
from tests.chaos.run import run
from tests.helpers.real_cluster import RealCluster
from tests.helpers.shifted_clock import why_no_shifted_clocks
from tests.kills.cluster import KvCluster

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = [
    BrokerFaultKind.DECISIONS_AND_LEADER_KILLED,
    BrokerFaultKind.DEPOSED_ASKED_FIRST,
    BrokerFaultKind.TOO_FEW_COPIES,
    BrokerFaultKind.CLOCKS_APART,
    BrokerFaultKind.DISK_FULL,
    BrokerFaultKind.LEASE_STORE_OLDER,
]


def test_no_fault_of_brokers_breaks_a_promise(cluster_name: str, tmp_path: Path) -> None:
    """A death, a former leader, too few copies, clocks apart, a full disk, a lease store that forgot: all is whole."""
    reason = why_no_shifted_clocks()
    kinds = [kind for kind in KINDS if reason is None or kind not in WRONG_CLOCKS]
    history: list[Acknowledged] = []
    with BrokerParts(tmp_path, ["c1", "c2", "c3", "n1", "n2", "n3"], 3) as parts:
        real = RealCluster(
            cluster_name,
            parts.bootstrap_servers,
            parts.valkey.redis_url,
            tmp_path,
            parts.addresses_of,
            SNAPSHOTS,
        )
        with KvCluster(real, controllers=3, nodes=3, rate_per_s=50, history=history) as cluster:
            injector = BrokerInjector(parts, cluster, random.Random(1))
            report = run(injector, cluster, history, kinds, lambda _: None)
    told = "\n".join(lines_of(report))
    assert not report.broken, told
    assert report.history.linearizable, told
    assert report.history.writes > 100
    assert report.lost_or_doubled == 0
    assert report.faults.total() == len(kinds)
    if reason is not None:
        pytest.skip(f"all was well, but no clocks were apart: {reason}")


def test_every_fault_of_brokers_comes() -> None:
    """One without a weight would never be drawn."""
    assert set(BrokerFaultKind) <= set(BROKER_WEIGHTS)

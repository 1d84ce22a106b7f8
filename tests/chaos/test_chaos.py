"""A few faults of ``python -m tests.chaos``, one of each sort, on real processes."""

import random
from pathlib import Path

import pytest

from tests.chaos.__main__ import Brokers, lines_of, unleash
from tests.chaos.faults import FaultKind

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
def test_no_fault_breaks_a_promise(tmp_path: Path) -> None:
    """The zombie, partitions, a lease store without memory, a frozen broker, no room for snapshots: all stays whole."""
    report, commands = unleash(tmp_path, Brokers(), KINDS, random.Random(1), nodes=3, rate_per_s=50)
    told = "\n".join([*lines_of(report), *commands])
    assert not report.broken, told
    assert report.history.linearizable, told
    assert report.history.writes > 100
    assert report.lost_or_doubled == 0
    assert report.faults.total() == len(KINDS)

"""A few faults of ``python -m tests.chaos``, one of each sort, on real processes."""

import random
from pathlib import Path

import pytest

from tests.chaos.__main__ import Brokers, lines_of, unleash
from tests.chaos.faults import FaultKind
from tests.chaos.run import Report

KINDS = [
    FaultKind.LEADER_AND_NODE_KILLED,
    FaultKind.LEADER_PAUSED,
    FaultKind.LEADER_WITHOUT_KAFKA,
    FaultKind.LEASE_STORE_EMPTIED,
    FaultKind.NODE_WITHOUT_KAFKA,
    FaultKind.NODE_SLOW,
    FaultKind.KAFKA_PAUSED,
    FaultKind.SNAPSHOTS_REFUSED,
]


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_no_fault_breaks_a_promise(tmp_path: Path) -> None:
    """The zombie, partitions, a lease store without memory, a frozen broker, no room for snapshots: all stays whole.

    Bundles are moved and split meanwhile.
    """
    report, commands = unleash(tmp_path, Brokers(), KINDS, random.Random(1), nodes=3, rate_per_s=50)
    told = "\n".join([*lines_of(report), *commands])
    assert not report.broken, told
    assert report.history.linearizable, told
    assert report.history.writes > 100
    assert report.lost_or_doubled == 0
    assert report.faults.total() == len(KINDS)
    see_bundles_moved(report)


def see_bundles_moved(report: Report) -> None:
    """That no two processes served the same says something only if much moved, and was looked at closely."""
    moves = report.moves
    assert {"transfer", "unload", "split"} <= set(moves.orders.done)
    assert moves.orders.done.total() > 10
    assert moves.servings > 200
    looks = sum(each.looks for each in moves.coverage)
    assert looks > 1_000
    assert sum(each.far_apart for each in moves.coverage) < looks / 20

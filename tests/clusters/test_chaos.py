"""A few faults of ``python -m tests.chaos --brokers 3``, one of each sort, on real brokers."""

import random
from pathlib import Path

import pytest

from tests.chaos.__main__ import Brokers, lines_of, unleash
from tests.chaos.broker_faults import BROKER_WEIGHTS, WRONG_CLOCKS, BrokerFaultKind
from tests.helpers.shifted_clock import why_no_shifted_clocks

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = [
    BrokerFaultKind.DECISIONS_AND_LEADER_KILLED,
    BrokerFaultKind.DEPOSED_ASKED_FIRST,
    BrokerFaultKind.TOO_FEW_COPIES,
    BrokerFaultKind.CLOCKS_APART,
    BrokerFaultKind.DISK_FULL,
    BrokerFaultKind.LEASE_STORE_OLDER,
]


def test_no_fault_of_brokers_breaks_a_promise(tmp_path: Path) -> None:
    """A death, a former leader, too few copies, clocks apart, a full disk, a lease store that forgot: all is whole."""
    reason = why_no_shifted_clocks()
    kinds = [kind for kind in KINDS if reason is None or kind not in WRONG_CLOCKS]
    report, commands = unleash(tmp_path, Brokers(3), kinds, random.Random(1), nodes=3, rate_per_s=50)
    told = "\n".join([*lines_of(report), *commands])
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

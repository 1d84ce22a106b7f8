"""A few faults of ``python -m tests.chaos --brokers 3``, one of each sort, on real brokers."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.__main__ import Brokers, lines_of, unleash
from tests.chaos.broker_fault_kinds import WITH_FOUR_BROKERS, WRONG_CLOCKS, BrokerFaultKind, weights_with
from tests.chaos.run import Report
from tests.chaos.test_chaos import see_bundles_moved
from tests.helpers.shifted_clock import why_no_shifted_clocks

pytestmark = [pytest.mark.clusters, pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = [
    BrokerFaultKind.DECISIONS_AND_LEADER_KILLED,
    BrokerFaultKind.DEPOSED_ASKED_FIRST,
    BrokerFaultKind.TOO_FEW_COPIES,
    BrokerFaultKind.NODE_WITHOUT_TABLE,
    BrokerFaultKind.CLOCKS_APART,
    BrokerFaultKind.DISK_FULL,
    BrokerFaultKind.LEASE_STORE_OLDER,
]


def test_no_fault_of_brokers_breaks_a_promise(tmp_path: Path) -> None:
    """All is whole whatever becomes of brokers.

    A death, a former leader, too few copies, a table out of reach, clocks apart, a full disk, a forgetful lease store.
    """
    reason = why_no_shifted_clocks()
    see_every_promise_kept(tmp_path, 3, [kind for kind in KINDS if reason is None or kind not in WRONG_CLOCKS])
    if reason is not None:
        pytest.skip(f"all was well, but no clocks were apart: {reason}")


def test_a_dead_follower_of_load_reports_costs_nobody_else(tmp_path: Path) -> None:
    """Reports wait for it until Kafka gives it up, and heartbeats do not: no node that lives is fenced."""
    report = see_every_promise_kept(tmp_path, 4, [BrokerFaultKind.LOAD_FOLLOWER_KILLED])
    assert report.fenced == 0
    assert report.seen.total() == 1


def see_every_promise_kept(folder: Path, brokers: int, kinds: Sequence[BrokerFaultKind]) -> Report:
    """What became of a cluster that met these faults, one after the other."""
    report, commands = unleash(folder, Brokers(brokers), kinds, random.Random(1), nodes=3, rate_per_s=50)
    told = "\n".join([*lines_of(report), *commands])
    assert not report.broken, told
    assert report.history.linearizable, told
    assert report.history.writes > 100
    assert report.lost_or_doubled == 0
    assert report.faults.total() == len(kinds)
    see_bundles_moved(report)
    return report


def test_every_fault_of_brokers_comes() -> None:
    """One without a weight would never be drawn; three brokers have one kind less than four."""
    assert set(BrokerFaultKind) <= set(weights_with(4))
    assert set(weights_with(4)) - set(weights_with(3)) == WITH_FOUR_BROKERS

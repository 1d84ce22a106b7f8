"""Whole controllers under lease profile ``sofa``: SOFARegistry elects, the log and Kafka's fencing stay ours."""

import time
from dataclasses import replace

import pytest

from controlplane.config import SofaLeaseConfig, SofaRenewal
from tests.helpers.memory_cluster import ObservedCluster, assert_log_is_whole

LOCK = SofaLeaseConfig("dc1", "META-MASTER", duration_ms=1_600, loop_interval_ms=40)


@pytest.mark.parametrize("renewal", SofaRenewal)
def test_the_lock_passes_on_and_the_log_goes_on(renewal: SofaRenewal) -> None:
    """The whole of the job, and the terms of an untouched row are those of the log."""
    lock = replace(LOCK, renewal=renewal)
    with ObservedCluster() as world:
        first = world.start("c1", sofa_lease=lock)
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        world.start("c2", sofa_lease=lock)
        world.start("o", sofa_lease=lock, follow_only=True)
        first.end()
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")
        row = world.locks.records["dc1", "META-MASTER"]
        assert (row.owner, row.term + 1) == ("c2", world.decisions()[-1].term)
        world.silence("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n2"})
        assert_log_is_whole(world)


def test_a_lost_lock_never_lets_the_term_fall() -> None:
    """The row begins anew, the log's terms go on."""
    with ObservedCluster() as world:
        world.start("c1", sofa_lease=LOCK)
        world.wait_until(world.table)
        key = LOCK.data_center, LOCK.lock_name
        with world.locks.lock:  # the store has come back empty, and another one was the first to insert
            row = world.locks.records[key]
            world.locks.records[key] = row._replace(owner="c2", term=0, term_duration=0)
        world.start("c2", sofa_lease=LOCK)
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")
        assert world.decisions()[-1].term >= 2
        assert_log_is_whole(world)


def test_a_leader_without_its_store_stops_after_half_the_lock() -> None:
    """As SOFARegistry's does; and leads again, in a new term, when the store is back."""
    with ObservedCluster() as world:
        world.start("c1", sofa_lease=LOCK)
        world.wait_until(world.table)
        world.locks.available = False
        time.sleep(1.0)
        world.join("n1")
        time.sleep(0.5)
        assert set(world.owners().values()) == {None}
        world.locks.available = True
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert world.decisions()[-1].term > 1
        assert_log_is_whole(world)


@pytest.mark.parametrize("stops", [False, True])
def test_the_default_stops_without_its_store_only_if_it_is_told_to(*, stops: bool) -> None:
    """Commits are fenced by Kafka, so leading on is safe; who prefers to stop can say so."""
    with ObservedCluster() as world:
        world.start("c1", stop_when_lease_store_is_lost=stops)
        world.wait_until(world.table)
        world.leases.available = False
        time.sleep(0.5)  # longer than the lease
        world.join("n1")
        if stops:
            time.sleep(0.5)
            assert set(world.owners().values()) == {None}
            world.leases.available = True
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert world.decisions()[-1].term == (2 if stops else 1)
        assert_log_is_whole(world)

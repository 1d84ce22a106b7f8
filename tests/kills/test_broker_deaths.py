"""What is quoted of brokers' deaths, and where it is called broken."""

from dataclasses import replace

from controlplane.embedded.kafka_cluster import cluster_settings
from examples.kv.client import Counts
from tests.helpers.fencing_bounds import Bounds
from tests.kills.broker_deaths import BrokerDeath, quoted, quoted_restart

DEATH = BrokerDeath(1, 2, False, False, 4_000, 3_000, 0, 12, 7, Counts(answered=10))
BOUNDS = Bounds(3)


def test_bounds_follow_from_the_settings() -> None:
    """Session and 2 s; what the session is longer than the limit, and 3 s; session and 5 s."""
    assert (BOUNDS.without_decisions_ms, BOUNDS.refusal_ms, BOUNDS.failover_with_broker_ms) == (5_000, 3_500, 8_000)
    assert Bounds(3, 2_000).refusal_ms == 3_000
    assert int(cluster_settings(3)["broker.session.timeout.ms"]) == BOUNDS.session_ms


def test_times_are_quoted_beside_their_bound() -> None:
    """A line each, none of them broken."""
    deaths = [DEATH, replace(DEATH, gap_ms=4_700, late_ms=40), replace(DEATH, with_leader=True, first_commit_ms=7_000)]
    assert quoted(deaths, BOUNDS, controllers_apart=True) == [
        "without decisions: p50 4000, p95 4700, greatest of 2 4700 ms, promised 5000 ms",
        "nodes refuse: p50 3000, p95 3000, greatest of 2 3000 ms, promised 3500 ms",
        "first commit if the leader dies too: p50 7000, p95 7000, greatest of 1 7000 ms, promised 8000 ms",
        "leader changed in 0 of 2 where it was not killed",
        "machine late by at most 40 ms, its disk by 7 ms",
        "requests answered 30, given up after 20 s 0",
    ]


def test_what_is_above_its_bound_is_called_broken() -> None:
    """Also a leader that changed although it lived, and a request that was given up in a restart."""
    lines = quoted([replace(DEATH, gap_ms=5_001, leader_changed=True)], BOUNDS, controllers_apart=True)
    assert [line.split()[0] for line in lines if line.startswith("BROKEN")] == ["BROKEN", "BROKEN"]
    assert quoted_restart(Counts(answered=5, failed=1)).startswith("BROKEN rolling restart")
    assert quoted_restart(Counts(answered=5)).startswith("rolling restart: answered 5")


def test_where_brokers_are_controllers_times_are_quoted_and_a_lost_leader_is_broken() -> None:
    """Nothing is promised of the times, because the active controller may have died; the leader has to stay."""
    lines = quoted([replace(DEATH, gap_ms=7_560, leader_changed=True)], BOUNDS, controllers_apart=False)
    assert lines[0] == (
        "without decisions: p50 7560, p95 7560, greatest of 1 7560 ms, promised 5000 ms where Kafka's controllers are "
        "apart"
    )
    assert [line for line in lines if line.startswith("BROKEN")] == [
        "BROKEN leader changed in 1 of 1 where it was not killed"
    ]

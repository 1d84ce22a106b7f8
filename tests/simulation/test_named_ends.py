"""Ends of topics that are not the end: brokers that lag, markers that are late. Every invariant is looked at."""

import pytest

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError
from tests.simulation.mutants.broker_scenes import let_marker_of_table_be_late
from tests.simulation.mutants.log_scenes import (
    a_contender_wakes_behind_a_successor,
    ends_of_log_and_table,
    let_contender_ask_former_brokers,
    let_leader_ask_former_brokers,
    let_log_lose_its_end,
    let_markers_be_late,
    the_log_loses_its_last_decision,
)
from tests.simulation.script import begun
from tests.simulation.setting import CONTROLLERS

pytestmark = pytest.mark.slow


def test_a_contender_that_asks_former_brokers_leads_only_when_it_has_read_the_last_commit() -> None:
    """Former leaders of partitions end log and table before it. The contender's own barrier shows that they do."""
    script = begun()
    contender = let_contender_ask_former_brokers(script)
    script.go_on(4_000)
    assert script.terms == [script.terms[0]]
    running = script.world.running[contender].controller
    assert running.phase in {ControllerPhase.READING_LOG, ControllerPhase.FOLLOWING, ControllerPhase.STEPPING_DOWN}
    script.world.machines[contender].network.stale_ends.clear()
    script.go_on_until(script.is_well, 8_000)
    assert [name for _, name in script.terms][1:] == [contender]
    script.judge_end()


def test_decisions_whose_end_is_not_marked_are_waited_for() -> None:
    """The coordinator has acknowledged the commit. That readers do not get as far does not make it lost."""
    script = begun()
    terms = list(script.terms)
    let_markers_be_late(script, 12_000)
    script.go_on_until(lambda: script.answered("unmarked") and script.is_well(), 4_000)
    assert script.terms == terms
    assert script.log.answers["unmarked"] == 1
    script.judge_end()


def test_a_node_whose_slots_are_given_away_behind_a_missing_marker_stops_serving() -> None:
    """It reads the table to its last stable offset again and again. That is no reading of the newest table."""
    script = begun()
    let_marker_of_table_be_late(script, 5_000)
    script.go_on_until(lambda: script.answered("unmarked") and script.is_well(), 4_000)
    script.judge_end()


def test_a_leader_that_reads_from_a_former_broker_leaves_it_to_others_and_stops_nobody() -> None:
    """It cannot read its own decisions. Its own barrier shows that the broker lags, not that the log has lost them."""
    script = begun()
    leader = let_leader_ask_former_brokers(script)
    script.go_on_until(lambda: script.leaders not in ([], [leader]), 16_000)
    assert leader in script.world.running
    script.world.machines[leader].network.stale_ends.clear()
    script.go_on_until(script.is_well, 6_000)
    script.judge_end()


@pytest.mark.parametrize("known_by", ["lease store", "snapshot"])
def test_a_log_that_has_lost_its_end_stops_every_controller(known_by: str) -> None:
    """All brokers are restored from an older copy: log and table agree, and others know more."""
    script = begun()
    if known_by == "snapshot":
        ends = ends_of_log_and_table(script)
        script.ask("later", "exclude_node", node="n4")
        script.ask("snapshot", "take_snapshot")
        script.go_on_until(lambda: script.answered("later") and script.answered("snapshot"), 3_000)
        script.go_on(3_000)
        let_log_lose_its_end(script, ends)
        script.world.leases.mark = None
    else:
        let_log_lose_its_end(script)
    script.go_on(12_000)
    assert not script.world.running
    assert {type(failure.error) for failure in script.world.failures} == {LogContinuityError}
    assert all(known_by in str(failure.error) for failure in script.world.failures)


def test_a_log_that_alone_has_lost_its_end_stops_every_controller() -> None:
    """Nothing but the table tells: the lease store has lost its mark, and there is no snapshot."""
    script = begun()
    let_log_lose_its_end(script, {DECISIONS: ends_of_log_and_table(script)[DECISIONS]})
    script.world.leases.mark = None
    script.go_on(12_000)
    assert not script.world.running
    assert {type(failure.error) for failure in script.world.failures} == {LogContinuityError}


def test_a_table_that_alone_has_lost_its_end_is_written_again() -> None:
    """The log holds everything: its leader shows it, and no controller stops."""
    script = begun()
    let_log_lose_its_end(script, {ROUTING_TABLE: ends_of_log_and_table(script)[ROUTING_TABLE]})
    script.go_on(6_000)
    assert len(script.world.running) == len(CONTROLLERS)
    script.world.start_client("late")
    script.go_on(2_000)
    table = script.world.clients["late"].table
    assert table is not None
    states = [running.controller._components.follower.state for running in script.world.running.values()]  # noqa: SLF001
    assert {state.epoch for state in states} == {table.epoch}


def test_nothing_is_committed_behind_a_decision_that_the_log_has_lost() -> None:
    """Standbys that have read it live on, and the barriers of their attempts fill the hole."""
    the_log_loses_its_last_decision()


def test_a_contender_that_wakes_behind_a_successor_ends_for_no_loss() -> None:
    """Table and lease store know of a term that its broker does not show. It finds that it was fenced, and follows."""
    a_contender_wakes_behind_a_successor()


def test_ticks_of_lost_decisions_fence_no_node_that_joins() -> None:
    """The leader's host is lost with its last decisions, which no contender has read. They are made anew by another."""
    script = begun()
    (leader,) = script.leaders
    ends = ends_of_log_and_table(script)
    mark = script.world.leases.mark
    for name in set(script.world.running) - {leader}:
        for topic in (DECISIONS, ROUTING_TABLE):
            script.world.machines[name].network.stale_ends[TopicPartition(topic, 0)] = ends[topic]
    for number in range(4):
        script.ask(f"lost-{number}", "exclude_node", node="unknown")
        script.go_on_until(lambda number=number: script.answered(f"lost-{number}"), 2_000)  # type: ignore[misc]
        script.go_on(150)
    script.stops_watching = True  # what was answered is lost
    script.world.kill(leader)
    script.world.lose_end(ends)
    script.world.leases.mark = mark
    for machine in script.world.machines.values():
        machine.network.stale_ends.clear()
    script.go_on_until(lambda: bool(script.leaders), 12_000)
    script.go_on(3_000)
    script.world.start_node("n5")
    script.world.machines["n5"].network.slowest_ms = 100
    script.go_on(4_000)
    (successor,) = script.leaders
    membership = script.world.running[successor].controller._components.follower.state.membership  # noqa: SLF001
    assert membership.nodes["n5"].lives
    assert not membership.fenced_lately

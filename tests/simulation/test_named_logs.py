"""Commits in doubt, open transactions, a recreated log, a compacted table: scripts, with every invariant looked at."""

import pytest

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.election.steps import ControllerPhase
from controlplane.service.takeover import BARRIER_KEY
from controlplane.testing import CommitFault
from tests.helpers.fencing_bounds import KAFKA_LOOKS_EVERY_MS
from tests.simulation.mutants.scenes import let_reader_lag_over_compaction
from tests.simulation.recreated import STOPPED, run_recreated
from tests.simulation.script import USUAL, Script, begun, bounds_of
from tests.simulation.setting import CONTROLLERS

pytestmark = pytest.mark.slow


def readable(script: Script, topic: str) -> bool:
    """Whether no open transaction hides anything of a topic from readers."""
    script.world.broker.settle()
    (partition,) = script.world.broker.partitions(script.world.cluster.topic(topic))
    return partition.last_stable_offset == partition.end_offset


def is_barrier(script: Script) -> bool:
    """Whether the last transaction on the decision log is a barrier, which will be aborted."""
    (partition,) = script.world.broker.partitions(script.world.cluster.topic(DECISIONS))
    return partition.last_key == BARRIER_KEY


def test_a_commit_on_a_frozen_broker_that_was_committed_after_all_counts_once() -> None:
    """The leader gets no answer for seconds. Then it asks only for the outcome of that commit."""
    script = begun()
    broker = script.world.broker
    ((term, leader),) = script.terms

    def freeze(_: str) -> None:
        if is_barrier(script):  # of the leader, which looks now and then whether it can still write
            return
        broker.fail_next_commit(CommitFault.ANSWER_LOST_AFTER_COMMIT)
        now_ms = script.world.scheduler.now_ms
        script.world.scheduler.at(now_ms + 1, lambda: setattr(broker, "available", False))
        script.world.scheduler.at(now_ms + 3_000, lambda: setattr(broker, "available", True))

    script.world.in_transaction = freeze
    script.ask("during-the-freeze", "refresh_table")
    script.go_on_until(lambda: not broker.available, 1_000)
    script.world.in_transaction = lambda _: None
    script.go_on(2_500)
    controller = script.world.running[leader].controller
    assert not broker.available
    assert controller.phase is ControllerPhase.AWAITING_ANSWER
    script.ask("after-it", "refresh_table")
    script.go_on_until(lambda: script.answered("after-it") and script.is_well(), 4_000)
    assert script.log.answers["during-the-freeze"] == 1
    assert script.terms == [(term, leader)]


def test_a_leader_fenced_by_its_own_time_out_is_followed_by_another_term() -> None:
    """Without a rival it gives the lease back. The next leader takes up what was not committed."""
    script = begun()
    script.world.broker.fail_next_commit(CommitFault.FENCED)
    script.ask("lost", "refresh_table")
    script.go_on_until(lambda: script.answered("lost") and script.is_well(), 5_000)
    assert [term for term, _ in script.terms] == [1, 2]
    assert script.log.answers["lost"] == 1


@pytest.mark.parametrize("has_successor", [True, False])
def test_a_leader_killed_in_a_transaction_holds_readers_back_no_longer(has_successor: bool) -> None:
    """A successor aborts what it left open; without one the broker does, after the transaction's time limit."""
    bounds = bounds_of(USUAL)
    # The fake looks at once whether a transaction has timed out.
    at_most_ms = bounds.failover_ms if has_successor else bounds.held_back_ms - KAFKA_LOOKS_EVERY_MS
    script = begun()
    world = script.world
    (leader,) = script.leaders
    if not has_successor:
        for name in CONTROLLERS:
            world.machines[name].network.lease_store = False
    killed: list[int] = []

    def die(name: str) -> None:
        world.in_transaction = lambda _: None
        killed.append(world.scheduler.now_ms)
        world.machines[name].network.slowest_ms = 1_000  # or it would have committed before it dies
        world.scheduler.at(world.scheduler.now_ms, lambda: world.kill(name))

    world.in_transaction = die
    script.ask("half", "refresh_table")
    script.go_on_until(lambda: leader not in world.running, 2_000)
    assert not readable(script, DECISIONS)
    assert not readable(script, ROUTING_TABLE)
    script.go_on_until(lambda: readable(script, DECISIONS) and readable(script, ROUTING_TABLE), at_most_ms)
    assert script.answered("half") is False or has_successor
    for name in CONTROLLERS:
        world.machines[name].network.lease_store = True
    script.go_on_until(lambda: script.answered("half") and script.is_well(), 6_000)
    assert script.log.answers["half"] == 1


def test_a_recreated_decision_log_stops_everybody() -> None:
    """Every controller that notices it stops, also after a restart. No reader goes back."""
    for seed in range(6):
        report = run_recreated(seed)
        assert not report.broken
        assert report.checked[STOPPED] >= len(CONTROLLERS)


@pytest.mark.parametrize("drop_tombstones", [False, True])
def test_a_reader_that_lags_over_a_compaction_shows_no_row_too_many(drop_tombstones: bool) -> None:
    """Without the tombstones it would keep a node that has left. The digest shows that, and it begins again."""
    script = begun()
    client = script.world.clients["r0"]
    let_reader_lag_over_compaction(script, drop_tombstones=drop_tombstones)
    assert client.table is not None
    assert "n4" in client.table.nodes
    script.world.machines["r0"].network.kafka = True
    script.go_on_until(lambda: client.table is not None and client.table.epoch == script.state.epoch, 1_000)
    assert "n4" not in client.table.nodes
    assert client._follower.rebuilds == drop_tombstones  # noqa: SLF001 - how it got there

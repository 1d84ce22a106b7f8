"""Cases that went wrong, or nearly, in trials with a real broker: each as a script, with every invariant looked at."""

from dataclasses import replace
from itertools import pairwise

import pytest

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.election.lease import Lease
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.membership.events import NodeFenced
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.values.identifiers import Epoch, Seq
from controlplane.errors import LogUnavailableError, UnsupportedFeatureLevelError
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.testing import CommitFault, MemoryTransactionalWriter
from tests.simulation.clients import SimulatedTransactionalWriter
from tests.simulation.mutants.scenes import let_reader_lag_over_compaction
from tests.simulation.network import ALL_THAT_A_CONTROLLER_FOLLOWS
from tests.simulation.recreated import STOPPED, run_recreated
from tests.simulation.script import USUAL, Script, begun
from tests.simulation.setting import CONTROLLERS, LEASE

pytestmark = pytest.mark.slow

TRANSACTION_TIMEOUT_MS = 5_000


def kill_leader(script: Script) -> str:
    """Its process dies, and comes back in a second."""
    (leader,) = script.leaders
    script.world.kill(leader)
    script.world.scheduler.at(script.world.scheduler.now_ms + 1_000, lambda: script.world.start_controller(leader))
    return leader


def readable(script: Script, topic: str) -> bool:
    """Whether no open transaction hides anything of a topic from readers."""
    script.world.broker.settle()
    (partition,) = script.world.broker.partitions(script.world.cluster.topic(topic))
    return partition.last_stable_offset == partition.end_offset


def test_an_empty_lease_store_and_a_stale_floor_reuse_no_term() -> None:
    """A contender that knows nothing is granted term 1 by a store that knows nothing; the log holds 1 and 2 already.

    It finds that out before it fences another controller.
    """
    script = begun()
    kill_leader(script)
    script.go_on_until(lambda: len(script.terms) == 2 and script.is_well(), 6_000)
    granted: list[Lease] = []
    for name in CONTROLLERS:
        script.world.machines[name].network.lease_store = False
    (leader,) = script.leaders
    script.world.kill(leader)
    script.world.leases.lose_data()
    script.world.start_controller("c3")
    for step in (ControllerPhase.READING_AHEAD, ControllerPhase.OPENING_WRITER):
        script.when(step, lambda _: granted.append(script.world.leases.lease))
    script.go_on_until(lambda: len(script.terms) == 3, 6_000)
    assert [(lease.owner, lease.term) for lease in granted] == [("c3", 1), ("c3", 3)]
    assert [term for term, _ in script.terms] == [1, 2, 3]
    assert script.terms[2][1] == "c3"


def test_a_commit_on_a_frozen_broker_that_was_committed_after_all_counts_once() -> None:
    """The leader gets no answer for seconds. Then it asks only for the outcome of that commit."""
    script = begun()
    broker = script.world.broker
    ((term, leader),) = script.terms

    def freeze(_: str) -> None:
        broker.fail_next_commit(CommitFault.ANSWER_LOST_AFTER_COMMIT)
        now_ms = script.world.scheduler.now_ms
        script.world.scheduler.at(now_ms + 5, lambda: setattr(broker, "available", False))
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


def test_a_late_contender_finds_that_another_has_led_and_fences_nobody() -> None:
    """It won the lease, stood still before it read the log, and wakes when another has led for a while."""
    script = begun()
    late: list[str] = []

    def stand_still(name: str) -> None:
        late.append(name)
        script.pause(name, 4_000)

    script.when(ControllerPhase.READING_AHEAD, stand_still)
    kill_leader(script)
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    script.go_on_until(lambda: script.world.machines[late[0]].runs, 4_000)
    script.go_on(2_000)
    assert len(script.terms) == 2
    assert script.leaders == [script.terms[1][1]] != late
    assert script.is_well()


def test_a_late_contender_fences_a_healthy_leader_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It won the lease, was paused just before opening its writer, and resumes after another has led for a while."""
    script = begun()
    late: list[str] = []
    right = SimulatedTransactionalWriter.open

    def stand_still(writer: SimulatedTransactionalWriter) -> None:
        if not late:
            running = script.world.running.items()
            late.extend(name for name, each in running if each.controller.phase is ControllerPhase.OPENING_WRITER)
            script.pause(late[0], 4_000)
        right(writer)

    monkeypatch.setattr(SimulatedTransactionalWriter, "open", stand_still)
    kill_leader(script)
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    healthy = script.terms[1][1]
    assert late
    assert healthy != late[0]
    script.go_on_until(lambda: script.leaders == [healthy], 100)
    script.go_on_until(lambda: script.world.machines[late[0]].runs, 4_000)
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: len(script.terms) == 3 and script.answered("meanwhile") and script.is_well(), 8_000)
    assert script.log.answers["meanwhile"] == 1


def test_a_rival_that_leads_during_a_take_over_stops_nobody() -> None:
    """A contender is paused between the log and the table, so the table is ahead of its knowledge of the log."""
    script = begun()
    late: list[str] = []

    def stand_still(name: str) -> None:
        late.append(name)
        script.pause(name, 4_000)

    script.when(ControllerPhase.CATCHING_UP, stand_still)
    kill_leader(script)
    script.go_on_until(lambda: len(script.terms) == 2, 6_000)
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: script.answered("meanwhile"), 1_000)
    script.go_on_until(lambda: script.world.machines[late[0]].runs, 4_000)
    script.go_on(2_000)
    assert late[0] in script.world.running
    assert script.is_well()


@pytest.mark.parametrize(("has_successor", "at_most_ms"), [(True, 3_500), (False, TRANSACTION_TIMEOUT_MS + 50)])
def test_a_leader_killed_in_a_transaction_holds_readers_back_no_longer(
    has_successor: bool,
    at_most_ms: int,
) -> None:
    """A successor aborts what it left open; without one the broker does, after the transaction's time limit."""
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


def test_two_lease_stores_and_one_kafka_never_have_two_leaders_in_a_term() -> None:
    """Each half elects a leader of its own. Kafka lets only one of them commit, and terms only rise."""
    script = begun()
    world = script.world
    misled = world.machines["c0"], world.machines["c1"]
    for machine in misled:
        machine.leases = world.other_leases
    for number in range(8):
        script.ask(f"split-{number}", "refresh_table")
        script.go_on(1_000)
    terms = [term for term, _ in script.terms]
    assert len(terms) >= 4
    assert terms == sorted(set(terms))
    assert len({leader for _, leader in script.terms}) >= 2
    for machine in misled:
        machine.leases = world.leases
    script.go_on_until(lambda: all(script.answered(f"split-{number}") for number in range(8)), 8_000)
    script.go_on_until(script.is_well, 4_000)


def test_a_lease_store_whose_clock_was_set_back_still_elects() -> None:
    """The dead leader's lease would last an hour more; a leader that lives keeps its own through such a step."""
    script = begun()
    clock = script.world.lease_clock
    clock.wall_step_ms -= 3_600_000
    script.go_on(3 * LEASE.duration_ms)
    assert len(script.terms) == 1
    (leader,) = script.leaders
    script.world.kill(leader)
    clock.wall_step_ms -= 3_600_000
    script.go_on_until(lambda: len(script.terms) == 2, 2 * LEASE.duration_ms)
    script.go_on_until(lambda: len(script.leaders) == 1, 1_000)
    assert script.leaders != [leader]


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


def test_a_heartbeat_sent_forty_seconds_ago_readmits_nobody() -> None:
    """The node is dead and fenced, and records that were delayed for long do not change that."""
    script = begun()
    incarnation = script.state.membership.nodes["n4"].incarnation
    script.world.kill("n4")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 4_000)
    script.go_on(37_000)
    seq = script.state.seq
    late = Heartbeat("n4", incarnation, 0, Epoch(0), NodeRole.DATA)
    script.world.send(HEARTBEATS, "n4", encode_input(late))
    script.go_on(4_000)
    assert script.state.membership.nodes["n4"].status is NodeStatus.FENCED
    assert script.state.seq == seq


def test_a_late_heartbeat_delays_detection_by_one_limit_at_most() -> None:
    """The reverse case: it arrives just before its sender, which is dead, would be fenced."""
    script = begun()
    limit_ms = script.state.cluster.silence_limit_ms
    incarnation = script.state.membership.nodes["n4"].incarnation
    script.world.kill("n4")
    script.go_on(limit_ms - 500)
    assert script.state.membership.nodes["n4"].lives
    late = Heartbeat("n4", incarnation, 0, Epoch(0), NodeRole.DATA)
    script.world.send(HEARTBEATS, "n4", encode_input(late))
    script.go_on(limit_ms - 200)
    assert script.state.membership.nodes["n4"].lives
    script.go_on_until(lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED, 600)
    assert [
        event for event in script.events(NodeFenced) if isinstance(event, NodeFenced) and event.node_id != "n4"
    ] == []


def test_a_controller_of_an_older_feature_level_wins_the_lease_and_stops() -> None:
    """A newer one has raised the level in the log: the older one reads it during its take-over, and changes nothing."""
    script = begun()
    world = script.world

    def raise_level(_: str) -> None:
        draft = Draft(script.state)
        draft.because(CauseKind.POSITIONS, script.state.leader, "of a newer version")
        decision = replace(draft.seal(script.state.decided_at_ms, {}).decision, feature_level=FEATURE_LEVEL + 1)
        writer = MemoryTransactionalWriter(world.cluster, world.broker)
        writer.open()
        parts = [OutgoingRecord(DECISIONS, decision_key(decision.seq), part) for part in encode_decision(decision)]
        script.stops_watching = True
        assert writer.commit(parts) is CommitOutcome.COMMITTED

    script.when(ControllerPhase.CONFIRMING_LEASE, raise_level)
    kill_leader(script)
    script.go_on_until(lambda: not world.running, 8_000)
    assert len(world.failures) >= 3
    assert all(isinstance(failure.error, UnsupportedFeatureLevelError) for failure in world.failures)
    (partition,) = world.broker.partitions(world.cluster.topic(DECISIONS))
    raised = partition.read(0, 1_000).records[-1]
    assert raised.key == decision_key(Seq(script.state.seq + 1))


def test_a_controller_that_a_lease_store_refuses_from_the_beginning_is_started_until_it_is_let_in() -> None:
    """It ends with an error. Controllers that the store knows already continue."""
    script = begun()
    world, (leader,) = script.world, script.leaders
    refused, other = (name for name in CONTROLLERS if name != leader)
    world.leases.refusal = "login refused"
    known = world.machines[leader], world.machines[other]
    world.kill(refused)
    world.start_controller(refused)
    first = world.machines[refused]
    script.go_on_until(lambda: world.machines[refused] is not first, 2_000)
    assert first.process.dead
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: script.answered("meanwhile"), 3_000)
    world.leases.refusal = ""
    script.go_on_until(lambda: world.machines[refused].lease_store_answered, 2_000)
    assert (world.machines[leader], world.machines[other]) == known
    for name in (leader, other):
        world.kill(name)
    script.go_on_until(lambda: script.leaders == [refused] and script.is_well(), 6_000)


def test_a_lease_lost_in_a_pause_is_noticed_before_anything_is_committed() -> None:
    """The zombie: a leader that stood still for longer than its lease wakes among others' decisions."""
    script = begun()
    (leader,) = script.leaders
    script.pause(leader, 3 * LEASE.duration_ms)
    script.ask("meanwhile", "refresh_table")
    script.go_on_until(lambda: script.answered("meanwhile"), 3 * LEASE.duration_ms)
    assert not script.world.machines[leader].runs
    script.go_on_until(lambda: script.world.machines[leader].runs, 3 * LEASE.duration_ms)
    script.ask("afterwards", "refresh_table")
    script.go_on_until(lambda: script.answered("afterwards") and script.is_well(), 3_000)
    assert len(script.leaders) == 1
    assert script.leaders != [leader]


def test_a_leader_that_appends_and_cannot_read_leaves_the_lease_to_others() -> None:
    """It would keep its lease and commit, and never see that a node has died."""
    script = begun()
    (deaf,) = script.leaders
    script.world.machines[deaf].network.hold_back(ALL_THAT_A_CONTROLLER_FOLLOWS)
    script.world.kill("n4")
    blind_ms = 3 * LEASE.duration_ms
    script.go_on_until(lambda: script.leaders and script.leaders != [deaf], blind_ms + 2 * LEASE.duration_ms)
    script.go_on_until(
        lambda: script.state.membership.nodes["n4"].status is NodeStatus.FENCED,
        2 * script.state.cluster.silence_limit_ms,
    )
    script.go_on(2 * blind_ms)
    assert len(script.terms) == 2, "it fences nobody whom it could not follow"
    script.world.machines[deaf].network.let_through(ALL_THAT_A_CONTROLLER_FOLLOWS)
    script.world.start_node("n4")
    script.go_on_until(script.is_well, 4_000)


def test_a_preferred_controller_that_cannot_lead_is_handed_the_lease_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ticks and reads, and no take-over of it succeeds: each hand-over ends a leadership that worked."""
    right = SimulatedTransactionalWriter.open
    failed_at_ms: list[int] = []

    def fail(writer: SimulatedTransactionalWriter) -> None:
        running = script.world.running.items()
        (name,) = (name for name, each in running if each.controller.phase is ControllerPhase.OPENING_WRITER)
        if name == "c2":
            failed_at_ms.append(script.world.scheduler.now_ms)
            raise LogUnavailableError("no answer from the coordinator")
        right(writer)

    script = begun(replace(USUAL, preferred="c2"))
    monkeypatch.setattr(SimulatedTransactionalWriter, "open", fail)
    script.go_on(75_000)
    between_ms = [later - earlier for earlier, later in pairwise(failed_at_ms)]
    assert len(between_ms) >= 4
    for failures, waited_ms in enumerate(between_ms, start=1):
        assert waited_ms >= 2**failures * LEASE.duration_ms + LEASE.handover_after_ms
    script.go_on_until(script.is_well, 4_000)

"""Take-overs that went wrong, or nearly, in trials with a real broker: scripts, with every invariant looked at."""

from dataclasses import replace

import pytest

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.config import DECISIONS
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.election.lease import Lease
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.values.identifiers import Seq
from controlplane.errors import UnsupportedFeatureLevelError
from controlplane.ports import CommitOutcome, OutgoingRecord
from controlplane.testing import MemoryTransactionalWriter
from tests.simulation.clients import SimulatedTransactionalWriter
from tests.simulation.script import Script, begun
from tests.simulation.setting import CONTROLLERS

pytestmark = pytest.mark.slow


def kill_leader(script: Script) -> str:
    """Its process dies, and comes back in a second."""
    (leader,) = script.leaders
    script.world.kill(leader)
    script.world.scheduler.at(script.world.scheduler.now_ms + 1_000, lambda: script.world.start_controller(leader))
    return leader


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

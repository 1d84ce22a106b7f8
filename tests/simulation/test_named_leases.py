"""Leases lost, doubled, refused, or held by a controller that cannot lead: scripts, with every invariant looked at."""

from dataclasses import replace
from itertools import pairwise

import pytest

from controlplane.core.election.steps import ControllerPhase
from controlplane.core.membership.node import NodeStatus
from controlplane.errors import LogUnavailableError
from tests.simulation.clients import SimulatedTransactionalWriter
from tests.simulation.network import ALL_THAT_A_CONTROLLER_FOLLOWS
from tests.simulation.script import USUAL, begun
from tests.simulation.setting import CONTROLLERS, LEASE

pytestmark = pytest.mark.slow


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

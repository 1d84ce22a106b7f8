"""The bounds of the page about fencing, each with exactly one fault. Every invariant is looked at.

Seeds allow more time, because their faults overlap and follow one another.
"""

from dataclasses import replace

import pytest

from controlplane.core.membership.node import NodeStatus
from controlplane.node import Access
from controlplane.testing.memory_partition import LeadingBroker
from tests.simulation.script import USUAL, Script, begun, bounds_of

pytestmark = pytest.mark.slow

BOUNDS = bounds_of(USUAL)
STARTS_MS = (0, 130, 370, 610, 850)
"""After how long a fault comes: heartbeats, ticks, renewals and notes are elsewhere in their intervals each time."""
LIMITS_MS = (2_500, 20_000)


def serves(script: Script, name: str) -> bool:
    """Whether a node would accept requests for a slot."""
    agent = script.world.agents[name]
    slots = agent.table.slots if agent.table is not None else ()
    return any(agent.ownership(slot.slot_id).access is Access.ACCEPT for slot in slots)


def is_fenced(script: Script, name: str) -> bool:
    """Whether the log says so."""
    return script.state.membership.nodes[name].status is NodeStatus.FENCED


def end_well(script: Script) -> None:
    """Judge the end, when all has healed."""
    script.go_on_until(script.is_well, 8_000)
    script.judge_end()


def await_successor(script: Script, leader: str, within_ms: int) -> None:
    """Another controller opens the next term within a time."""
    terms = len(script.terms)
    script.go_on_until(lambda: len(script.terms) > terms, within_ms)
    assert script.terms[-1][1] != leader


@pytest.mark.parametrize("limit_ms", LIMITS_MS)
@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_a_node_that_is_cut_off_refuses_in_time(start_ms: int, limit_ms: int) -> None:
    """By a clock that is a tenth slow."""
    setting = replace(USUAL, policy=replace(USUAL.policy, silence_limit_ms=limit_ms))
    script = begun(setting)
    script.world.machines["n4"].clock.drift(0.9)
    script.go_on(3_000 + start_ms)
    assert serves(script, "n4")
    script.world.machines["n4"].network.kafka = False
    script.go_on_until(lambda: not serves(script, "n4"), bounds_of(setting).self_fencing_ms)


@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_a_death_is_detected_in_time(start_ms: int) -> None:
    """Its last heartbeat may have been sent just before."""
    script = begun()
    script.go_on(start_ms)
    script.world.kill("n4")
    script.go_on_until(lambda: is_fenced(script, "n4"), BOUNDS.detection_ms)
    end_well(script)


@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_deaths_at_once_are_detected_in_time(start_ms: int) -> None:
    """The second one waits until all that may be silent would have been heard."""
    script = begun()
    script.spread_heartbeats()
    script.go_on(start_ms)
    for name in ("n3", "n4"):
        script.world.kill(name)
    script.go_on_until(lambda: is_fenced(script, "n3") or is_fenced(script, "n4"), BOUNDS.detection_ms)
    script.go_on_until(lambda: is_fenced(script, "n3") and is_fenced(script, "n4"), BOUNDS.further_detection_ms)
    end_well(script)


@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_a_leader_that_dies_has_a_successor_in_time(start_ms: int) -> None:
    """The lease has to expire first."""
    script = begun()
    script.go_on(start_ms)
    (leader,) = script.leaders
    script.world.kill(leader)
    await_successor(script, leader, BOUNDS.failover_ms)
    script.world.start_controller(leader)
    end_well(script)


@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_a_leader_whose_commit_is_not_answered_has_a_successor_in_time(start_ms: int) -> None:
    """It cannot reach the coordinator of its transactions, and everything else. Others can."""
    script = begun()
    script.go_on(start_ms)
    (leader,) = script.leaders
    coordinator = LeadingBroker()
    script.world.broker.coordinator = coordinator
    script.world.machines[leader].network.unreachable.add(coordinator)
    script.ask("unanswered", "exclude_node", node="n3")
    await_successor(script, leader, BOUNDS.failover_from_unanswered_ms)
    script.world.machines[leader].network.unreachable.clear()
    script.go_on_until(lambda: script.answered("unanswered"), 1_000)
    end_well(script)


@pytest.mark.parametrize("start_ms", STARTS_MS)
def test_a_leader_that_gets_no_acknowledgement_has_a_successor_in_time(start_ms: int) -> None:
    """It reaches the lease store, and would keep its lease for ever."""
    script = begun()
    script.go_on(start_ms)
    (leader,) = script.leaders
    script.world.machines[leader].network.kafka = False
    await_successor(script, leader, BOUNDS.failover_from_unacknowledged_ms)
    script.world.machines[leader].network.kafka = True
    end_well(script)

"""Who fails, at each step of each handoff: nobody serves twice, nothing is lost, and every order comes to an end.

Each row is a run of its own with every invariant of the simulation looked at, and raw ownership after each turn of a
node. The fault strikes exactly when the log shows the step first.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import pytest

from controlplane.core.bundles.orders import OrderOutcome
from controlplane.core.values.identifiers import NodeId
from tests.simulation.handoffs.scene import (
    BOUNDS,
    OLD,
    STEPS,
    USUALLY_MS,
    Handoff,
    Scene,
    Step,
    scene,
)
from tests.simulation.network import TABLE

pytestmark = pytest.mark.slow

_AWAY_MS: Final = 3_000
_LONGER_THAN_ALL_MS: Final = 13_000


class Fault(NamedTuple):
    """A fault.

    Attributes:
        strike: makes it happen.
        holds_up_ms: for how long it holds a step up at most, in log time.
        lasts_ms: virtual time for which it lasts at least.
    """

    strike: Callable[[Scene], object]
    holds_up_ms: int
    lasts_ms: int = 0


def _start_again(run: Scene, name: NodeId) -> None:
    """Its process ends without a word, and the next one begins at once."""
    run.world.kill(name)
    run.world.start_node(name)


def _leader_dies(run: Scene) -> None:
    (leader,) = run.leaders
    run.world.kill(leader)


def _kafka_is_away(run: Scene) -> None:
    run.world.broker.available = False
    run.world.scheduler.at(run.world.scheduler.now_ms + _AWAY_MS, lambda: setattr(run.world.broker, "available", True))


def _cut_off_from_table(run: Scene) -> None:
    network = run.world.machines[OLD].network
    network.hold_back(TABLE)
    run.mended.append(lambda: network.let_through(TABLE))


def _cut_off_from_heartbeats(run: Scene) -> None:
    """It reads the table, and nothing that it writes arrives."""
    writers = run.world.machines[OLD].writers
    for writer in writers:
        writer.is_stuck = True
        run.mended.append(partial(setattr, writer, "is_stuck", False))


def _replace_unheard(run: Scene) -> None:
    """A second process of the node begins beside the first, which reads no table and so does not hear of it."""
    _cut_off_from_table(run)
    run.world.start_node(OLD, second_machine=f"{OLD}-again")


def _suspend(run: Scene) -> None:
    machine = run.world.machines[OLD]
    run.pause(OLD, _AWAY_MS)
    machine.clock.suspend()
    run.world.scheduler.at(run.world.scheduler.now_ms + _AWAY_MS, machine.clock.resume)


FAULTS: Final = {
    "old owner dies": Fault(lambda run: run.world.kill(OLD), BOUNDS.detection_ms),
    "next owner dies": Fault(lambda run: run.world.kill(run.next_node), BOUNDS.detection_ms),
    "old owner starts again": Fault(lambda run: _start_again(run, OLD), BOUNDS.unsaid_release_ms),
    "next owner starts again": Fault(lambda run: _start_again(run, run.next_node), BOUNDS.detection_ms),
    "leader dies": Fault(_leader_dies, BOUNDS.failover_ms),
    "Kafka is away": Fault(_kafka_is_away, 0, _AWAY_MS),
    "old owner reads no table": Fault(_cut_off_from_table, BOUNDS.unsaid_release_ms, _AWAY_MS),
    "old owner is replaced and reads no table": Fault(_replace_unheard, BOUNDS.unsaid_release_ms, _AWAY_MS),
    "old owner sends no heartbeats": Fault(_cut_off_from_heartbeats, BOUNDS.detection_ms, _AWAY_MS),
    "old owner is paused": Fault(
        lambda run: run.pause(OLD, _LONGER_THAN_ALL_MS), BOUNDS.detection_ms, _LONGER_THAN_ALL_MS
    ),
    "old owner is suspended": Fault(_suspend, BOUNDS.detection_ms, _AWAY_MS),
}

_BEFORE_IT_SERVES: Final = {Step.ORDERED, Step.RELEASE, Step.ASSIGN}
_BEFORE_IT_IS_DIVIDED: Final = {Step.ORDERED, Step.SPLITTING}
FAIL: Final = {
    (Handoff.TRANSFER, "next owner dies"): _BEFORE_IT_SERVES,
    (Handoff.SPLIT, "old owner reads no table"): _BEFORE_IT_IS_DIVIDED,
    (Handoff.SPLIT_BY_OWNER, "old owner reads no table"): _BEFORE_IT_IS_DIVIDED,
}
"""The orders that fail by these faults, by the step; every other one is carried out."""

ROWS: Final = [
    (handoff, step, fault)
    for handoff, steps in STEPS.items()
    for step in steps
    for fault in FAULTS
    if not (handoff.is_split and fault.startswith("next owner"))
]


@pytest.mark.parametrize(("handoff", "step", "name"), ROWS, ids=lambda each: getattr(each, "value", each))
def test_a_handoff_in_which_somebody_fails(handoff: Handoff, step: Step, name: str) -> None:
    """It ends in bounded log time, by a name, and all is served again by nodes that live."""
    fault = FAULTS[name]
    run = scene(handoff)
    run.order(fault.strike, step)
    run.to_the_end(fault.holds_up_ms + _AWAY_MS + 6 * USUALLY_MS, fault.lasts_ms)
    assert run.longest_step_ms() <= fault.holds_up_ms + USUALLY_MS, run.steps
    fails = step in FAIL.get((handoff, name), set())
    if handoff.is_of_slot:
        # The pin says who leads; without that node the slot stays, or goes to a follower.
        assert (run.owner == run.next_node) is (run.next_node in run.world.agents)
        return
    assert run.came_of_it is not None
    assert run.came_of_it.outcome is (OrderOutcome.FAILED if fails else OrderOutcome.DONE), run.came_of_it
    assert run.bundle_id in run.state.bundles.by_id or handoff.is_split

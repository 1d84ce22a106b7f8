"""Faults of processes and machines other than Kafka's: suspended machines, nodes started twice, clocks ahead.

They come in addition to the other faults of a run, by choices of their own.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from tests.simulation.fault_kinds import FaultKind
from tests.simulation.setting import CONTROLLERS, LEASE
from tests.simulation.world import World

WEIGHTS: Final[Mapping[FaultKind, int]] = {
    FaultKind.CONTROLLER_SUSPENDED: 3,
    FaultKind.CONTROLLERS_START_AHEAD: 1,
    FaultKind.NODE_SUSPENDED: 4,
    FaultKind.NODE_STARTED_TWICE: 3,
    FaultKind.NODE_HAS_A_TWIN: 2,
}
"""How often each kind is drawn, in proportion."""
_SUSPENDED_AT_MOST_MS: Final = 6_000
_TWIN_LIVES_AT_MOST_MS: Final = 4_000
_STEPS_MS: Final = (-3_600_000, 0)
_AHEAD_MS: Final = (3_000, 30_000, 3_600_000)

_UntilMs = Callable[[random.Random, int, int], int]
_Heal = Callable[[random.Random, Callable[[], object], int], None]


def choose_node_faults(choose: random.Random) -> list[FaultKind]:
    """None to two of them, by weight."""
    return choose.choices(list(WEIGHTS), list(WEIGHTS.values()), k=choose.randint(0, 2))


class NodeFaults:
    """Does these faults to a world."""

    def __init__(self, world: World, until_ms: _UntilMs, heal: _Heal) -> None:
        """Nothing is broken.

        Args:
            world: what they are done to.
            until_ms: chooses when a fault ends: choices of the fault, longest and shortest time in ms.
            heal: schedules what ends a fault: choices of the fault, what to do, after how many ms at most.
        """
        self._world = world
        self._until_ms = until_ms
        self._heal = heal

    def actions(self) -> Mapping[FaultKind, Callable[[random.Random, str], None]]:
        """What each kind does, with its choices and the controller that it meets."""
        kinds = FaultKind
        return {
            kinds.CONTROLLER_SUSPENDED: lambda choose, name: self._suspend(choose, name, 3 * LEASE.duration_ms),
            kinds.CONTROLLERS_START_AHEAD: lambda choose, _: self._start_ahead(choose),
            kinds.NODE_SUSPENDED: lambda choose, _: self._suspend(choose, self._node(choose), _SUSPENDED_AT_MOST_MS),
            kinds.NODE_STARTED_TWICE: lambda choose, _: self._start_twice(choose),
            kinds.NODE_HAS_A_TWIN: lambda choose, _: self._start_twin(choose, self._node(choose)),
        }

    def _suspend(self, choose: random.Random, name: str, longest_ms: int) -> None:
        """The process stands still, and one of its machine's two monotonic clocks does."""
        machine, until_ms = self._world.machines[name], self._until_ms(choose, longest_ms, 500)
        machine.process.paused_until_ms = until_ms
        machine.clock.suspend()
        self._world.scheduler.at(until_ms, machine.clock.resume)

    def _start_ahead(self, choose: random.Random) -> None:
        """None of them has observed anything, and each looks for the recent heartbeats by its own clock."""
        ahead_ms = choose.choice(_AHEAD_MS)
        for name in CONTROLLERS:
            self._world.kill(name)
            self._world.machines[name].clock.wall_step_ms += ahead_ms
            self._heal(choose, partial(self._world.start_controller, name), LEASE.duration_ms)

    def _start_twice(self, choose: random.Random) -> None:
        """A node dies, and two processes of it start at once. With clocks behind both choose the same incarnation."""
        name, step_ms = self._node(choose), choose.choice(_STEPS_MS)
        self._world.kill(name)
        self._world.machines[name].clock.wall_step_ms += step_ms
        self._world.start_node(name)
        self._start_twin(choose, name, step_ms)

    def _start_twin(self, choose: random.Random, name: str, step_ms: int = 0) -> None:
        twin = f"{name}-again"
        self._world.start_node(name, second_machine=twin)
        self._world.machines[twin].clock.wall_step_ms = step_ms
        self._heal(choose, lambda: self._world.kill(twin), _TWIN_LIVES_AT_MOST_MS)

    def _node(self, choose: random.Random) -> str:
        return choose.choice(sorted(self._world.agents) or ["n0"])

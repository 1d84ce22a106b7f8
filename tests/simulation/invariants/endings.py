"""Processes end for two reasons only: they were asked to, or another process of their node was started.

Where a test lets callbacks raise, that is a third one.

That other one may be dead: if its join is appended after its successor has read ``membership``, and its clock was ahead
of its successor's, it has the greater incarnation. The successor ends then, and a third process joins above both.
"""

from dataclasses import dataclass
from typing import Final

from controlplane.core.session.node_session import SessionState
from controlplane.errors import SupersededError
from controlplane.node import NodeAgent
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

NO_AGENT_ENDS: Final = "no node's process ends by itself, unless another one of the node was started"


@dataclass
class EndingWatch:
    """Looks at the agents at intervals."""

    world: World
    verdicts: Verdicts

    def look(self) -> None:
        """Agents catch what ends them, and tell it to those who ask."""
        for agents in (self.world.agents, self.world.twins):
            for place, agent in agents.items():
                error = _error_of(agent)
                replaced = agent.state is SessionState.SUPERSEDED or isinstance(error, SupersededError)
                has_twin = place.removesuffix("-again") in self.world.started_twice | self.world.died_joining
                is_failing = place.removesuffix("-again") in self.world.failing
                holds = has_twin if replaced else error is None or is_failing
                self.verdicts.judge(NO_AGENT_ENDS, holds, f"{place}, {agent.state.value}, has ended: {error!r}")


def _error_of(agent: NodeAgent) -> BaseException | None:
    try:
        agent.check()
    except Exception as error:  # noqa: BLE001 - whatever ended it
        return error
    return None

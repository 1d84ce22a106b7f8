"""Requests that last: no other node has their key while they may be answered, and a planned move lets them end.

The services of a run ask for the right to serve at one moment. A script holds requests open here, in the contexts that
agents offer for them.
"""

from dataclasses import dataclass, field
from typing import Final

from controlplane.node import Access, NodeAgent
from controlplane.node.served_request import ServedBundleRequest, ServedSlotRequest
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

ALONE: Final = "while a request may be answered, no other process accepts one for its key"
KEEPS_ITS_RIGHT: Final = (
    "a request keeps its right to its end, if that comes before a planned release has waited enough"
)


@dataclass(frozen=True)
class HeldRequest:
    """A request that was accepted and has not ended.

    Attributes:
        place: the machine of the process that accepted it.
        namespace: of its bundle; empty for a request that is served by slot.
        key: its key.
        call: the context that was entered.
    """

    place: str
    namespace: str
    key: str
    call: ServedBundleRequest | ServedSlotRequest


@dataclass
class HeldRequests:
    """Those of a script. To look at after every step of time."""

    world: World
    verdicts: Verdicts
    _open: list[HeldRequest] = field(default_factory=list)

    def hold(self, place: str, key: str, namespace: str = "") -> HeldRequest:
        """Let a process accept a request, which has to be one that it serves."""
        agent = self.world.agents[place]
        if namespace:
            call: ServedBundleRequest | ServedSlotRequest = agent.serve(namespace, key)
        else:
            assert agent.table is not None
            call = agent.serve_slot(agent.table.slot_for(key).slot_id)
        call.__enter__()
        assert call.access is Access.ACCEPT, f"{place} answers {call.access} for {key}"
        request = HeldRequest(place, namespace, key, call)
        self._open.append(request)
        return request

    def end(self, request: HeldRequest) -> None:
        """Let it end. It has to have kept its right until now."""
        self.verdicts.judge(
            KEEPS_ITS_RIGHT, request.call.held, f"that of {request.place} for {request.key} ended before"
        )
        self._open.remove(request)
        request.call.__exit__(None, None, None)

    def look(self) -> None:
        """Compare what may be answered with what others accept."""
        for request in self._open:
            if request.call.held:
                others = [place for place, agent in self.world.agents.items() if place != request.place]
                found = [place for place in others if _accepts(self.world.agents[place], request)]
                text = f"{request.place} may answer one for {request.key}, and {found} would accept one"
                self.verdicts.judge(ALONE, not found, text)


def _accepts(agent: NodeAgent, request: HeldRequest) -> bool:
    if request.namespace:
        return agent.bundle_of(request.namespace, request.key).access is Access.ACCEPT
    table = agent.table
    return table is not None and agent.ownership(table.slot_for(request.key).slot_id).access is Access.ACCEPT

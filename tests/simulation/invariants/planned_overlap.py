"""A planned move has no moment at which two processes would accept a request for what is moved.

What agents say is looked at, before any token. A move that an emergency forces is not planned: there
:mod:`tests.simulation.invariants.overlap` bounds how long the former owner serves.
"""

from collections.abc import Iterator
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.routing.hashing import slot_of
from controlplane.core.slots.events import SlotHandoffsChanged, SlotsAssigned, SlotsSplit
from controlplane.core.values.identifiers import SlotId
from controlplane.node import Access, NodeAgent
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.service import KEYS
from tests.simulation.world import World

BUNDLES: Final = "no two processes would accept a request for a bundle that was released to be moved"
SLOTS: Final = "no two processes would accept a request for a slot that was released to be moved"
_HASHES: Final = {key: bundle_hash(key) for key in KEYS}


class PlannedOverlapWatch:
    """Looks at intervals; knows from the log what was released."""

    def __init__(self, world: World, verdicts: Verdicts) -> None:
        """Nothing was released."""
        self._world = world
        self._verdicts = verdicts
        self._bundles: dict[str, Bundle] = {}
        self._slots: set[SlotId] = set()
        self._state = State()

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        self._state = after
        for event in decision.events:
            match event:
                case BundlesAssigned(bundles=bundles):
                    for row in bundles:
                        if row.state is OwnershipState.RELEASING:
                            self._bundles[row.bundle_id] = row
                        elif row.is_forced and row.state is OwnershipState.OWNED:
                            self._bundles.pop(row.bundle_id, None)
                case SlotHandoffsChanged(handoffs=handoffs):
                    self._slots |= {each.slot_id for each in handoffs if each.releases}
                case SlotsAssigned(slots=slots):
                    for slot in slots:
                        handoff = before.slots.handoffs.get(slot.slot_id)
                        if handoff is None or not handoff.releases or handoff.next_leader != slot.leader:
                            self._slots.discard(slot.slot_id)
                case SlotsSplit():
                    self._slots.clear()
                case _:
                    pass
        self._bundles = {each: row for each, row in self._bundles.items() if each in after.bundles.by_id}

    def look(self) -> None:
        """Ask the agents for the keys of what was released."""
        for row in self._bundles.values():
            for key, hashed in _HASHES.items():
                if row.lower <= hashed < row.end:
                    believers = [place for place, agent in self._running() if _accepts(agent, row.namespace, key)]
                    detail = f"{believers} would accept {key} of bundle {row.bundle_id}"
                    self._verdicts.judge(BUNDLES, len(believers) <= 1, detail)
        table, hash_function = self._state.slots.table, self._state.cluster.policy.hash_function
        for key in KEYS if self._slots else ():
            slot_id = slot_of(key, len(table), hash_function)
            if slot_id in self._slots:
                believers = [place for place, agent in self._running() if _accepts_slot(agent, key)]
                self._verdicts.judge(SLOTS, len(believers) <= 1, f"{believers} would accept {key} of slot {slot_id}")

    def _running(self) -> Iterator[tuple[str, NodeAgent]]:
        for agents in (self._world.agents, self._world.twins):
            for place, agent in agents.items():
                if self._world.machines[place].runs:
                    yield place, agent


def _accepts(agent: NodeAgent, namespace: str, key: str) -> bool:
    return agent.bundle_of(namespace, key).access is Access.ACCEPT


def _accepts_slot(agent: NodeAgent, key: str) -> bool:
    return agent.slot_of(key).access is Access.ACCEPT

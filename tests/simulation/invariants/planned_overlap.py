"""A planned move has no moment at which two processes would accept a request for what is moved.

What agents say is looked at, before any token. A move that an emergency forces is not planned: there
:mod:`tests.simulation.invariants.overlap` bounds how long the former owner serves. What counts as planned is found here
by the state before a decision, and not by what the decision says: a leader that lives on and hands off loses no slot to
a node that hands off unless it was told to release it to that one.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.routing.hashing import slot_of
from controlplane.core.slots.events import SlotHandoffsChanged, SlotsAssigned, SlotsSplit
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.node import Access, NodeAgent
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.service import KEYS
from tests.simulation.world import World

BUNDLES: Final = "no two processes would accept a request for a bundle that was released to be moved"
SLOTS: Final = "no two processes would accept a request for a slot that was released to be moved"
RELEASES: Final = "a leader that lives and hands off is told to release a slot before another node leads it"
HASHES: Final = {key: bundle_hash(key) for key in KEYS}
"""The hash of each key in a namespace."""


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
                    renewed = renewed_by(decision.events)
                    for slot in slots:
                        # A leader that another process of its node replaces is lost to the slot: that is an emergency.
                        if _was_released(before, slot) and before.slots.table[slot.slot_id].leader not in renewed:
                            continue
                        self._slots.discard(slot.slot_id)
                        is_taken = _is_planned(before, renewed, after, slot)
                        self._verdicts.judge(RELEASES, not is_taken, lambda slot=slot: f"{slot} by {decision.seq}")
                case SlotsSplit():
                    self._slots.clear()
                case _:
                    pass
        self._bundles = {each: row for each, row in self._bundles.items() if each in after.bundles.by_id}

    def look(self) -> None:
        """Ask the agents for the keys of what was released."""
        for row in self._bundles.values():
            for key, hashed in HASHES.items():
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


def _was_released(before: State, slot: Slot) -> bool:
    """Whether a slot's leader has been told to release it to the one of a new row."""
    handoff = before.slots.handoffs.get(slot.slot_id)
    return handoff is not None and handoff.releases and handoff.next_leader == slot.leader


def _is_planned(before: State, renewed: AbstractSet[NodeId], after: State, slot: Slot) -> bool:
    """Whether a new row takes the leadership from a node that goes on living, where both nodes hand off."""
    earlier = before.slots.rows.get(slot.slot_id)
    if earlier is None or earlier.leader == slot.leader or earlier.leader in renewed:
        return False
    leaders = [after.membership.nodes.get(name or "") for name in (earlier.leader, slot.leader)]
    hand_off = all(node is not None and node.may_hold and node.hands_off for node in leaders)
    return hand_off and not BUILT_IN_POLICIES[after.cluster.policy.slot_policy].paces_itself


def _accepts(agent: NodeAgent, namespace: str, key: str) -> bool:
    return agent.bundle_of(namespace, key).access is Access.ACCEPT


def _accepts_slot(agent: NodeAgent, key: str) -> bool:
    return agent.slot_of(key).access is Access.ACCEPT

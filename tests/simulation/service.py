"""The service of a simulated node: it accepts writes for the slots that its node leads, with their fencing tokens.

It follows the agent's documentation. Before it accepts anything under a token that is new to it, it shows the token to
every other node that lives in its table. A node that has seen a token accepts nothing under an older one. The service
waits for a node that it cannot reach, until the table no longer shows that node as living, because the node has then
fenced itself. The accepted writes are checked by :mod:`tests.simulation.invariants.ownership`.

It opens and closes bundles as it is told to. What it has open is checked by
:mod:`tests.simulation.invariants.opened_bundles`. Copying, opening and closing take no time unless a script says so.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.session.node_session import SessionState
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.node import Access, FencingToken, NodeAgent, NodeCallbacks, SlotGained, SlotLost, TopicLoad
from controlplane.ports import Signal
from tests.simulation.machine import Machine

KEYS = tuple(f"key-{number}" for number in range(24))
_ROUND_MS = 200
_WRITES_A_ROUND = 8


class SimulatedService(NodeCallbacks):
    """The service of one process; :meth:`run` is its thread.

    Attributes:
        agent: set right after construction, because each needs the other.
        node_id: the node whose process it is.
        copying_ms: time for which it copies the data of a slot that it gains.
        opening_ms, closing_ms, dividing_ms: time for which it opens a bundle, closes one, and looks through its topics.
        open_bundles: the bundles that it has open, by id, with the tokens under which it opened them. A bundle counts
            from the end of its opening to the end of its closing.
    """

    agent: NodeAgent

    def __init__(
        self,
        node_id: NodeId,
        machine: Machine,
        services: Mapping[str, "SimulatedService"],
        random_source: random.Random,
        accepted: Callable[[NodeId, str, FencingToken], None],
        openings: dict[tuple[NodeId, str], Epoch],
    ) -> None:
        """Set up.

        Args:
            node_id: the node.
            machine: that it runs on.
            services: all that run now, by machine.
            random_source: for the choice of keys and times.
            accepted: called with every write.
            openings: gets the epoch of the token under which it has opened a bundle, by node and bundle.
        """
        self.node_id = node_id
        self._machine = machine
        self._services = services
        self._random = random_source
        self._accepted = accepted
        self._openings = openings
        self.copying_ms = self.opening_ms = self.closing_ms = self.dividing_ms = 0
        self.open_bundles: dict[str, FencingToken] = {}
        self._gained: dict[SlotId, tuple[SlotGained, int]] = {}
        self._copied: set[SlotId] = set()
        self._table: RoutingTable | None = None
        self._unsettled: set[SlotId] = set()
        self._shown: dict[SlotId, FencingToken] = {}
        self._seen: dict[SlotId, FencingToken] = {}

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """See :meth:`NodeCallbacks.on_slots_gained`."""
        now_ms = self._machine.scheduler.now_ms
        self._gained |= {slot.slot_id: (slot, now_ms) for slot in gained}

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """See :meth:`NodeCallbacks.on_slots_lost`."""
        for slot in lost:
            self._gained.pop(slot.slot_id, None)

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """See :meth:`NodeCallbacks.on_bundle_assigned`."""
        self._take_time(self.opening_ms)
        self.open_bundles[bundle.bundle_id] = token
        self._openings[self.node_id, bundle.bundle_id] = token.since_epoch

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """See :meth:`NodeCallbacks.on_bundle_releasing`."""
        self._take_time(self.closing_ms)
        self.open_bundles.pop(bundle.bundle_id, None)

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """See :meth:`NodeCallbacks.on_bundle_split`."""
        token = self.open_bundles.pop(parent.bundle_id)
        self.open_bundles |= {child.bundle_id: token for child in children}

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """See :meth:`NodeCallbacks.topics_of_bundle`."""
        self._take_time(self.dividing_ms)
        return ()

    def lacks(self, slot_id: SlotId) -> bool:
        """Whether it was given a slot of which it has never had the data.

        One that gets it once more, because the whole table was written again, has had them: a leader cannot know yet.
        """
        return slot_id in self._gained and slot_id not in self._copied

    def run(self, stop: Signal) -> None:
        """Fetch gained slots, show tokens and accept writes, until it is stopped or its agent has ended.

        An agent ends by an error, or when a newer process of its node has replaced it.
        """
        while not stop.is_set() and not self._has_ended():
            table = self.agent.table
            if table is not None:
                self._settle_in(table)
                for key in self._random.sample(KEYS, _WRITES_A_ROUND):
                    self._write(key)
            self._machine.scheduler.sleep(self._random.randint(_ROUND_MS // 2, _ROUND_MS))

    def see(self, tokens: Mapping[SlotId, FencingToken]) -> None:
        """Another node shows under which tokens it is about to accept."""
        for slot_id, token in tokens.items():
            self._seen[slot_id] = max(token, self._seen.get(slot_id, token))

    @property
    def runs(self) -> bool:
        """Whether this process has not ended."""
        return self._machine.runs

    @property
    def answers(self) -> bool:
        """Whether others can ask this node."""
        return self._machine.runs and self._machine.network.peers

    def _take_time(self, milliseconds: int) -> None:
        if milliseconds:
            self._machine.scheduler.sleep(milliseconds)

    def _has_ended(self) -> bool:
        """Whether the agent will do nothing any more."""
        try:
            self.agent.check()
        except Exception:  # noqa: BLE001 - whatever ended it
            return True
        return self.agent.state is SessionState.SUPERSEDED

    def _settle_in(self, table: RoutingTable) -> None:
        """Have the data of gained slots, and show every new token of a slot that is led here."""
        now_ms = self._machine.scheduler.now_ms
        for slot_id, (gained, since_ms) in list(self._gained.items()):
            if now_ms >= since_ms + self.copying_ms and self.agent.slot_ready(slot_id, gained.epoch):
                del self._gained[slot_id]
                self._copied.add(slot_id)
        if table is not self._table:
            self._table = table
            self._unsettled = {slot.slot_id for slot in table.slots if slot.leader == self.node_id}
        new = {}
        for slot_id in sorted(self._unsettled):
            ownership = self.agent.ownership(slot_id)
            if ownership.access is Access.ACCEPT:
                if self._shown.get(slot_id) == ownership.token:
                    self._unsettled.discard(slot_id)
                else:
                    new[slot_id] = ownership.token
        if new and all(self._show(node_id, new) for node_id, row in sorted(table.nodes.items()) if row.status.lives):
            self._shown |= new

    def _show(self, node_id: NodeId, tokens: Mapping[SlotId, FencingToken]) -> bool:
        others = [each for each in self._services.values() if each.node_id == node_id and each is not self]
        if node_id == self.node_id:
            # Another process of this node may not know yet that it was replaced; one that has ended accepts nothing.
            others = [each for each in others if each.runs]
            if not others:
                return True
        self._machine.latency()
        if not others or not (self._machine.network.peers and all(other.answers for other in others)):
            return False
        for other in others:
            other.see(tokens)
        return True

    def _write(self, key: str) -> None:
        """A client's write arrives; it is accepted if this node may."""
        table = self.agent.table
        if table is None:
            return
        slot_id = table.slot_for(key).slot_id
        ownership = self.agent.ownership(slot_id)
        if ownership.access is not Access.ACCEPT or self._shown.get(slot_id) != ownership.token:
            return
        # A node that has split a slot already shows the parts under their own numbers.
        count = len(table.slots)
        if any(token > ownership.token for seen_id, token in self._seen.items() if seen_id % count == slot_id):
            return
        self._accepted(self.node_id, key, ownership.token)

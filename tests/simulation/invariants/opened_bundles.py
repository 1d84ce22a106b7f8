"""What services have open and have copied: the next owner's is ready when a planned move ends, the former one's closed.

Agents answer for their services. Here the services themselves are looked at: what they were told to open and to close,
and what they have done of it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, BundleSplit
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import renewed_by
from controlplane.core.slots.events import SlotHandoffsChanged, SlotsAssigned
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.node import Access, HandoffSettings
from tests.simulation.invariants.bounds import LOOK_EVERY_MS
from tests.simulation.invariants.consent import ConsentWatch
from tests.simulation.invariants.planned_overlap import HASHES
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.service import SimulatedService
from tests.simulation.world import World

OPEN_AT_ONE: Final = "no two services have a bundle open of which the former owner has said that it released it"
OPENED_FIRST: Final = "a bundle that is handed off is owned by a node whose service has opened it"
COPIED_FIRST: Final = "a slot that is handed off is led by a node whose service has its data"
OPENED_FOR_THIS: Final = (
    "an agent accepts requests only for a bundle that its service has opened since it came to the node"
)
_PATIENCE_MS: Final = 1_000
"""After a split the children are served before the service was told of them."""


@dataclass
class OpenedBundlesWatch:
    """Looks at decisions and at intervals."""

    world: World
    verdicts: Verdicts
    consent: ConsentWatch
    _held_since: dict[str, tuple[NodeId | None, Epoch]] = field(default_factory=dict)
    _uncopied: set[SlotId] = field(default_factory=set)
    _unopened_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    _state: State = field(default_factory=State)

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        self._state = after
        for event in decision.events:
            match event:
                case BundlesAssigned(bundles=bundles):
                    for row in bundles:
                        self._see_row(row, after.epoch, decision)
                case BundleSplit(bundle_id=bundle_id, children=children):
                    parent = self._held_since.get(bundle_id, (None, Epoch(0)))
                    self._held_since.update({each.bundle_id: parent for each in children})
                case SlotHandoffsChanged(handoffs=handoffs):
                    told = "".join(cause.evidence for cause in decision.causes)
                    for each in handoffs:
                        is_late = f"slot {each.slot_id} moves without its data" in told
                        (self._uncopied.add if is_late else self._uncopied.discard)(each.slot_id)
                case SlotsAssigned(slots=slots):
                    for slot in slots:
                        self._see_slot(slot, before, decision)
                case _:
                    pass

    def _see_slot(self, slot: Slot, before: State, decision: Decision) -> None:
        """A planned row is carried out. One that an emergency forces, or that was waited for too long, is none here."""
        handoff, service = before.slots.handoffs.get(slot.slot_id), self.world.services.get(slot.leader or "")
        if handoff is None or not handoff.releases or handoff.next_leader != slot.leader or service is None:
            return
        if before.slots.table[slot.slot_id].leader in renewed_by(decision.events):
            return
        text = f"decision {decision.seq} gives slot {slot.slot_id} to {slot.leader}, which copies it"
        self.verdicts.judge(COPIED_FIRST, slot.slot_id in self._uncopied or not service.lacks(slot.slot_id), text)

    def _see_row(self, row: Bundle, epoch: Epoch, decision: Decision) -> None:
        holder = row.next_owner if row.ownership_state is OwnershipState.ASSIGNING else row.owner
        known = self._held_since.get(row.bundle_id)
        if known is None or known[0] != holder:
            self._held_since[row.bundle_id] = holder, epoch
        is_new = row.owner is not None and row.owner_epoch == row.state_epoch and not row.is_forced
        node = self._state.membership.nodes.get(row.owner or "")
        if is_new and row.ownership_state is OwnershipState.OWNED and node is not None and node.hands_off:
            since = self._held_since[row.bundle_id][1]
            opened = self.world.openings.get((node.node_id, row.bundle_id), Epoch(0))
            text = (
                f"decision {decision.seq} makes {row.owner} the owner of {row.bundle_id}, opened in {opened} of {since}"
            )
            self.verdicts.judge(OPENED_FIRST, opened >= since, text)

    def look(self) -> None:
        """Compare what services have open with one another, and with what their agents accept."""
        bundles = self._state.bundles.by_id
        running = [(place, service) for place, service in self.world.services.items() if service.runs]
        # An agent waits no longer than its limit for a service that closes a bundle.
        closing = [each for each in running if each[1].closing_ms <= HandoffSettings().release_limit_ms]
        # Nor does a process that was replaced, and cannot read that, close anything: its agent only stops in time.
        processes = Counter(service.node_id for _, service in running)
        closing = [each for each in closing if processes[each[1].node_id] == 1]
        for bundle_id in self.consent.by_word & bundles.keys():
            places = [place for place, service in closing if bundle_id in service.open_bundles]
            self.verdicts.judge(OPEN_AT_ONE, len(places) <= 1, f"{places} have {bundle_id} open")
        unopened: dict[tuple[str, str], int] = {}
        for namespace in self._state.bundles.namespaces:
            for place, service in running:
                for bundle_id in self._accepted(namespace, service):
                    token, (_, since) = service.open_bundles.get(bundle_id), self._held_since[bundle_id]
                    if token is None or token.since_epoch < since:
                        unopened[place, bundle_id] = self._unopened_ms.get((place, bundle_id), 0) + LOOK_EVERY_MS
        self._unopened_ms = unopened
        late = [each for each, waited_ms in unopened.items() if waited_ms > _PATIENCE_MS]
        self.verdicts.judge(OPENED_FOR_THIS, not late, f"accepted, and not open for it: {late}")

    def _accepted(self, namespace: str, service: SimulatedService) -> set[str]:
        """The bundles of which an agent accepts a key, by the ids of a table that is no later than the log's."""
        answers = [service.agent.bundle_of(namespace, key) for key in HASHES]
        ids = {each.bundle.bundle_id for each in answers if each.access is Access.ACCEPT and each.bundle is not None}
        return ids & self._held_since.keys()

"""Nothing is taken from a node that lives before it has said that it released it, or has certainly stopped.

What nodes have said is read from ``heartbeats``, and the time for which they were waited for is virtual time. Neither
shares code with the product, so that a leader that counts wrongly, or takes one word for another, is found although
nobody accepts a request at the wrong moment.
"""

from dataclasses import dataclass, field
from typing import Final

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundlesAssigned, BundleSplit, NamespaceCreated
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced, NodeRemoved
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import Node
from controlplane.core.slots.events import SlotHandoffsChanged, SlotsAssigned, SlotsSplit
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.reports import slot_ids_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Incarnation, NodeId, ProcessId, SlotId
from controlplane.errors import InvalidInputError
from controlplane.ports import RawRecord
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

BUNDLES_BY_CONSENT: Final = (
    "no bundle is taken from a node that lives before it has released it, or has certainly stopped"
)
SLOTS_BY_CONSENT: Final = "no slot is taken from a node that lives before it has released it, or has certainly stopped"
_LEAST_MARGIN_DIVISOR: Final = 9
_READING_MS: Final = 1_500
"""A reading of the table is valid for the silence limit without a ninth at the most, and for this at the least."""
_REFRESH_MS: Final = 10_000
CLOCK_SHARE: Final = 0.8
"""The part of the bound that passes in virtual time at the least. Clocks of brokers that are fast, or are set forward,
let log time pass sooner."""

_Thing = tuple[str | SlotId, int]
"""A bundle and the version of its row, or a slot and the epoch in which it was told to be released."""


@dataclass
class ConsentWatch:
    """Looks at each decision.

    Attributes:
        by_word: the bundles of which the last owner that had to release them has said so itself.
    """

    world: World
    verdicts: Verdicts
    by_word: set[str] = field(default_factory=set)
    _read_to: dict[int, int] = field(default_factory=dict)
    _said: set[tuple[NodeId, Incarnation, ProcessId, _Thing]] = field(default_factory=set)
    _told_at_ms: dict[_Thing, int] = field(default_factory=dict)
    _replaced_at_ms: dict[NodeId, int] = field(default_factory=dict)

    def see(self, before: State, decision: Decision, after: State) -> None:
        """A decision was committed."""
        now_ms = self.world.scheduler.now_ms
        rows: dict[str, Bundle] = {}
        left: set[NodeId] = set()
        for event in decision.events:
            match event:
                case NodeRemoved(node_id=node_id) | NodeFenced(node_id=node_id, cause=FencingCause.SILENCE):
                    left.add(node_id)
                case NodeAdmitted(node=node):
                    known = before.membership.nodes.get(node.node_id)
                    if known is not None and known.lives and node.node_id not in left:
                        self._replaced_at_ms[node.node_id] = now_ms
                case NamespaceCreated(bundles=bundles) | BundleSplit(children=bundles):
                    rows.update((each.bundle_id, each) for each in bundles)
                case BundlesAssigned(bundles=bundles):
                    for row in bundles:
                        former = rows.get(row.bundle_id) or before.bundles.by_id[row.bundle_id]
                        self._see_bundle(before, decision, after, former, row)
                        rows[row.bundle_id] = row
                case SlotHandoffsChanged(handoffs=handoffs):
                    told = (each for each in handoffs if each.releases)
                    self._told_at_ms.update({(each.slot_id, each.release_epoch): now_ms for each in told})
                case SlotsAssigned(slots=slots):
                    for slot in slots:
                        self._see_slot(before, decision, after, slot)
                case _:
                    pass

    def waits_for_former_process(self, node_id: NodeId, state: State) -> bool:
        """Whether a process that another one of the node has replaced may still serve what is that one's now."""
        at_ms = self._replaced_at_ms.get(node_id)
        return at_ms is not None and self.world.scheduler.now_ms - at_ms < _bound_ms(state) / CLOCK_SHARE

    def _see_bundle(self, before: State, decision: Decision, after: State, former: Bundle, row: Bundle) -> None:
        now_ms = self.world.scheduler.now_ms
        if row.state is OwnershipState.RELEASING:
            self._told_at_ms[row.bundle_id, row.version] = now_ms
        owner = former.owner
        if owner is None or row.owner == owner or row.state is None:
            return
        self.by_word.discard(row.bundle_id)
        node = _who_goes_on(before, after, owner)
        if node is None:
            return
        is_told = former.state is OwnershipState.RELEASING
        why_not = (
            self._why_not(node, (row.bundle_id, former.version), decision, after) if is_told else "nothing told it"
        )
        text = f"decision {decision.seq} takes {row.bundle_id} from {owner}: {why_not}"
        self.verdicts.judge(BUNDLES_BY_CONSENT, not why_not, text)
        if self._has_said(node, (row.bundle_id, former.version)):
            self.by_word.add(row.bundle_id)

    def _see_slot(self, before: State, decision: Decision, after: State, row: Slot) -> None:
        is_split = any(isinstance(event, SlotsSplit) for event in decision.events)
        policy = BUILT_IN_POLICIES[after.cluster.policy.slot_policy]
        former = before.slots.table[row.slot_id].leader if row.slot_id < len(before.slots.table) else None
        if is_split or policy.paces_itself or former is None or row.leader in (None, former):
            return
        node, heir = _who_goes_on(before, after, former), after.membership.nodes[row.leader]
        if node is None or not heir.hands_off:
            return
        handoff = before.slots.handoffs.get(row.slot_id)
        if handoff is None or not handoff.releases or handoff.next_leader != row.leader:
            why_not = f"nothing told it to release it to {row.leader}"
        else:
            why_not = self._why_not(node, (row.slot_id, handoff.release_epoch), decision, after)
        text = f"decision {decision.seq} takes slot {row.slot_id} from {former}: {why_not}"
        self.verdicts.judge(SLOTS_BY_CONSENT, not why_not, text)

    def _why_not(self, node: Node, thing: _Thing, decision: Decision, after: State) -> str:
        """Why something may not be taken from a node; empty if it may."""
        self._read(decision)
        least_ms = CLOCK_SHARE * _bound_ms(after)
        now_ms = self.world.scheduler.now_ms
        waited_ms = now_ms - self._told_at_ms.get(thing, now_ms)
        if waited_ms >= least_ms:
            return ""
        if not self._has_said(node, thing):
            return f"it has not said that it released it, {waited_ms} ms after it was told to"
        replaced_at_ms = self._replaced_at_ms.get(node.node_id)
        if replaced_at_ms is not None and now_ms - replaced_at_ms < least_ms:
            return f"its word is that of a process which replaced another one {now_ms - replaced_at_ms} ms ago"
        return ""

    def _has_said(self, node: Node, thing: _Thing) -> bool:
        return (node.node_id, node.incarnation, node.process_id, thing) in self._said

    def _read(self, decision: Decision) -> None:
        """Take the heartbeats before the decision's positions."""
        for number, partition in enumerate(self.world.broker.partitions(self.world.cluster.topic(HEARTBEATS))):
            begin, until = self._read_to.get(number, 0), decision.positions.get(f"{HEARTBEATS}[{number}]", 0)
            for record in partition.read(begin, max(until - begin, 0)).records:
                if record.offset < until:
                    raw = RawRecord(HEARTBEATS, number, record.offset, record.append_time_ms, record.key, record.value)
                    self._take(raw)
            self._read_to[number] = max(begin, until)

    def _take(self, raw: RawRecord) -> None:
        try:
            beat = decode_input(HEARTBEATS, raw).payload
        except InvalidInputError:
            return
        if not isinstance(beat, Heartbeat):
            return
        things: list[_Thing] = [
            (step.bundle_id, step.version) for step in beat.bundle_steps if step.step is BundleStep.RELEASED
        ]
        things += [(slot_id, each.release_epoch) for each in beat.released_slots for slot_id in slot_ids_of(each.runs)]
        self._said.update((beat.node_id, beat.incarnation, beat.process_id, thing) for thing in things)


def _who_goes_on(before: State, after: State, node_id: NodeId) -> Node | None:
    """The node, if it lives, takes part in handoffs, and is the same process after a decision as before it."""
    former, node = before.membership.nodes.get(node_id), after.membership.nodes.get(node_id)
    if former is None or node is None or not (former.lives and node.lives and node.may_hold and node.hands_off):
        return None
    is_same = (former.incarnation, former.process_id) == (node.incarnation, node.process_id)
    return node if is_same else None


def _bound_ms(state: State) -> float:
    """Log time after which a node that lives has certainly stopped, by its clock that may be a tenth slow."""
    limit_ms = state.cluster.silence_limit_ms
    valid_ms = max(limit_ms * (1 - 1 / _LEAST_MARGIN_DIVISOR), _READING_MS)
    return valid_ms / 0.9 + _REFRESH_MS

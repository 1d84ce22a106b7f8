"""The progress and the end of a node's drain, from the decision log."""

from collections.abc import Iterator
from dataclasses import dataclass

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted, NodeDraining, NodeFenced, NodeUndrained
from controlplane.core.membership.node import NodeStatus
from controlplane.core.operations.kept_slots import kept_slots, kept_text
from controlplane.core.operations.slot_numbers import counted, named_slots
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import OrderKind, supports
from controlplane.core.values.identifiers import NodeId, Seq, SlotId
from controlplane.inspection.readers import LoggedDecision


@dataclass(frozen=True, slots=True)
class DrainEnd:
    """How a drain ended.

    Attributes:
        relieved: whether other nodes hold everything that the node held.
        sentence: what happened.
    """

    relieved: bool
    sentence: str


class DrainProgress:
    """The drain of one node, as the decision log records it.

    Attributes:
        state: after the last decision.
        next_offset: in ``decisions``, after that decision.
        began: the decision that began the drain; None until it was read.
        ended: why the node no longer drains, and in which decision; empty while the log records no end.
        given: the slots that the node has held since the drain began.
    """

    def __init__(self, node_id: NodeId) -> None:
        """Begin before the first decision."""
        self.node_id = node_id
        self.state = State()
        self.next_offset = 0
        self.began: Seq | None = None
        self.ended = ""
        self.given: set[SlotId] = set()

    def take(self, logged: LoggedDecision) -> None:
        """Take the next decision of the log."""
        decision = logged.decision
        held = self._held()
        self.state = apply_decision(self.state, decision)
        self.next_offset = logged.offset + 1
        for event in decision.events:
            match event:
                case NodeDraining(node_id=self.node_id):
                    self.began, self.ended = decision.seq, ""
                    self.given = set()
                case NodeUndrained(node_id=self.node_id):
                    self.ended = f"undrained by {_undrained_by(logged, self.node_id)} in decision {decision.seq}"
                case NodeAdmitted(node=node) if node.node_id == self.node_id:
                    self.ended = f"a new process of that name joined in decision {decision.seq}"
                case NodeFenced(node_id=self.node_id):
                    lost = decision.certificate.lost_slots if decision.certificate is not None else ()
                    with_it = f", and the last copy of {named_slots(lost)} with it" if lost else ""
                    self.ended = f"it was fenced in decision {decision.seq}{with_it}"
                case _:
                    pass
        self.given |= held

    def held_text(self) -> str:
        """What the node holds, as a text; empty if it holds nothing."""
        slots = len(self._held())
        bundles = list(self._bundles())
        if not slots and not bundles:
            return ""
        owned = [each for each in bundles if each.owner == self.node_id]
        releasing = sum(1 for each in owned if each.ownership_state is OwnershipState.RELEASING)
        coming = len(bundles) - len(owned)
        parts = [f"{releasing} being released"] if releasing else []
        parts += [f"{coming} on its way to it"] if coming else []
        in_flight = f" ({', '.join(parts)})" if parts else ""
        return f"{counted(slots, 'slot')} and {counted(len(bundles), 'bundle')}{in_flight}"

    def only_kept(self, kept: tuple[SlotId, ...]) -> bool:
        """Whether the node holds only slots that it never gives away, and at least one."""
        held = self._held()
        return bool(held) and not any(self._bundles()) and held <= set(kept)

    def deserted(self) -> list[SlotId]:
        """The slots that the node gave away and no node holds, ascending."""
        return [slot.slot_id for slot in self.state.slots.table if slot.slot_id in self.given and not slot.replicas]

    def end(self) -> DrainEnd | None:
        """How the drain ended; None while it continues."""
        node_id, state = self.node_id, self.state
        node = state.membership.nodes.get(node_id)
        if node is not None and node.status in (NodeStatus.ACTIVE, NodeStatus.FENCED):
            return _failed(f"{node_id} no longer drains: {self.ended or 'the log does not say that it ever did'}")
        if not self.held_text():
            if deserted := self.deserted():
                return _failed(
                    f"{node_id} holds nothing any more, but no node took {named_slots(deserted)}: 'controlplane table "
                    "status' shows why"
                )
            return DrainEnd(relieved=True, sentence=f"{node_id} holds nothing any more")
        reason = _why_it_stays(state, node_id)
        if reason:
            return _failed(
                f"{node_id} keeps what it holds: {reason}; it stays draining until 'controlplane nodes undrain "
                f"{node_id}'"
            )
        kept = _kept(state, node_id)
        if self.only_kept(kept):
            return _failed(f"{node_id} {kept_text(kept)}; it holds nothing else any more")
        return None

    def _bundles(self) -> Iterator[Bundle]:
        """The bundles that the node owns or is to own next: such a one may be its own with the next decision."""
        return (each for each in self.state.bundles.by_id.values() if self.node_id in (each.owner, each.next_owner))

    def _held(self) -> set[SlotId]:
        return {slot.slot_id for slot in self.state.slots.table if self.node_id in slot.replicas}


def _failed(sentence: str) -> DrainEnd:
    return DrainEnd(relieved=False, sentence=sentence)


def _kept(state: State, node_id: NodeId) -> tuple[SlotId, ...]:
    """The slots that the node never gives away. An unknown slot policy is assumed to support exclusions."""
    supports_exclusions = supports(BUILT_IN_POLICIES, state.cluster.policy.slot_policy, OrderKind.SLOT_EXCLUSIONS)
    return kept_slots(state, node_id, supports_exclusions=supports_exclusions)


def _why_it_stays(state: State, node_id: NodeId) -> str:
    """Why a draining node cannot give its slots away; empty if it can."""
    if state.slots.paused:
        return "reconciliation is paused; 'controlplane table resume' continues it"
    if not state.membership.can_relieve(node_id):
        return "there is no other node to take it over"
    return ""


def _undrained_by(logged: LoggedDecision, node_id: NodeId) -> str:
    """The principal who undrained the node. The answer names the node only in its text."""
    for event in logged.decision.events:
        if (
            isinstance(event, IntentAnswered)
            and event.kind == IntentKind.UNDRAIN_NODE.value
            and event.outcome is IntentOutcome.DONE
            and f"{node_id!r}" in event.detail
        ):
            return event.principal or "somebody"
    return "somebody"

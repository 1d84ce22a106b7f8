"""What would happen: a decision that nobody commits, made by the very code that makes those that are committed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controlplane.config import INTENTS, MEMBERSHIP
from controlplane.core.admission import take_membership
from controlplane.core.asked import Circumstances, unknown_node
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import FencingCause, IntentAnswered, NodeFenced
from controlplane.core.identifiers import Coordinates, NodeId
from controlplane.core.intents import take_intents
from controlplane.core.observations import Observations
from controlplane.core.planning import is_called_for, plan_ownership
from controlplane.core.records import InputRecord, Intent, NodeJoined, NodeLeaving
from controlplane.core.slot_policies import BUILT_IN_POLICIES
from controlplane.core.slot_policy import SlotPolicies
from controlplane.core.slot_table import Slot, split_parts
from controlplane.core.state import State


@dataclass(frozen=True, slots=True)
class NodeDies:
    """A node falls silent for good."""

    node_id: NodeId


Change: TypeAlias = NodeDies | NodeJoined | NodeLeaving | Intent
"""What may be supposed."""


@dataclass(frozen=True, slots=True)
class NodeCount:
    """What a node holds and leads, before and after."""

    node_id: NodeId
    held_before: int
    held_after: int
    led_before: int
    led_after: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What would happen.

    Attributes:
        moved: replicas that would be where they were not.
        least_moved: the proven least number; None where the slot policy proves nothing.
        leader_changes: slots that another node would lead.
        least_leader_changes: the proven least number; None where the slot policy proves nothing.
        counts: of every node that holds something before or after, by name.
        rows: slots that would change, before and after; a part of a split slot begins with its slot's row.
        shortfalls: what was asked of the slot policy and cannot be done, a sentence each.
        refusals: what of the changes could not be, a sentence each.
        answers: how the intents would be answered, in words.
    """

    moved: int
    least_moved: int | None
    leader_changes: int
    least_leader_changes: int | None
    counts: tuple[NodeCount, ...]
    rows: tuple[tuple[Slot, Slot], ...]
    shortfalls: tuple[str, ...]
    refusals: tuple[str, ...]
    answers: tuple[IntentAnswered, ...]


def what_if(
    state: State,
    observations: Observations,
    changes: Sequence[Change],
    policies: SlotPolicies = BUILT_IN_POLICIES,
) -> tuple[Draft, tuple[str, ...]]:
    """The draft of the decision that these changes would bring about together, and what of them could not be.

    Without any change it is the draft of a plan at once.
    """
    now_ms = max(observations.now_ms or 0, state.decided_at_ms)
    draft = Draft(state)
    refusals: list[str] = []
    asked: list[InputRecord] = []
    for number, change in enumerate(changes):
        match change:
            case NodeDies(node_id=node_id):
                refusals += _fence(draft, node_id, now_ms)
            case Intent():
                asked.append(InputRecord(Coordinates(INTENTS, 0, number, now_ms), change, b""))
            case _:
                record = InputRecord(Coordinates(MEMBERSHIP, 0, number, now_ms), change, b"")
                refusal = take_membership(draft, record, observations, now_ms)
                refusals += [refusal.detail] if refusal is not None else []
    take_intents(draft, asked, Circumstances(policies, now_ms, observations.next_heartbeat_offset))
    if not changes or is_called_for(draft):
        plan_ownership(draft, observations, policies, now_ms)
    return draft, tuple(refusals)


def effect_of(draft: Draft, refusals: tuple[str, ...] = ()) -> Effect:
    """What a draft would change in the slot table."""
    before = draft.before.slots
    before = (*before, *split_parts(before, len(draft.state.slots), draft.epoch))
    # A plan that is carried out in steps is shown as a whole.
    planned = draft.state.planned
    after = tuple(planned.get(slot.slot_id, slot) for slot in draft.state.slots)
    rows = tuple((old, new) for old, new in zip(before, after, strict=True) if old != new)
    certificate = draft.certificate
    return Effect(
        moved=sum(len(set(new.replicas) - set(old.replicas)) for old, new in rows),
        least_moved=certificate.least_moved if certificate else None,
        leader_changes=sum(old.leader != new.leader for old, new in rows),
        least_leader_changes=certificate.least_leader_changes if certificate else None,
        counts=_counts(before, after),
        rows=rows,
        shortfalls=certificate.shortfalls if certificate else (),
        refusals=refusals,
        answers=tuple(event for event in draft.events if isinstance(event, IntentAnswered)),
    )


def _fence(draft: Draft, node_id: NodeId, now_ms: int) -> list[str]:
    node = draft.state.nodes.get(node_id)
    if node is None:
        return [unknown_node(draft.state, node_id).detail]
    if not node.lives:
        return [f"node {node_id!r} is {node.status.value} already"]
    silence_ms = draft.state.silence_limit_ms
    draft.because(CauseKind.NODE_EXPIRED, node_id, "supposed")
    draft.add(NodeFenced(node_id, node.incarnation, FencingCause.SILENCE, silence_ms, now_ms))
    return []


def _counts(before: tuple[Slot, ...], after: tuple[Slot, ...]) -> tuple[NodeCount, ...]:
    held = [Counter(name for slot in slots for name in slot.replicas) for slots in (before, after)]
    led = [Counter(slot.leader for slot in slots if slot.leader is not None) for slots in (before, after)]
    return tuple(
        NodeCount(name, held[0][name], held[1][name], led[0][name], led[1][name])
        for name in sorted({*held[0], *held[1]})
    )

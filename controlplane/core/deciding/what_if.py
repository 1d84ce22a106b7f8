"""What-if: a decision that is not committed, made by the same code as committed decisions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from controlplane.config import INTENTS, MEMBERSHIP
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersGiven
from controlplane.core.bundles.orders import BundleOrder
from controlplane.core.deciding.admission import take_membership
from controlplane.core.deciding.expiry import release_former_silence_limit
from controlplane.core.deciding.log_clock import log_time_of_question_ms
from controlplane.core.deciding.observations import Observations, operation_context
from controlplane.core.deciding.planning import plan_ownership, plan_what_is_due
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import FencingCause, NodeFenced, renewed_by
from controlplane.core.membership.inputs import NodeJoined, NodeLeaving
from controlplane.core.operations.answers import unknown_node
from controlplane.core.operations.intent_effects import take_intents
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.slots.table import Slot, split_parts, without_nodes
from controlplane.core.values.identifiers import Coordinates, NodeId
from controlplane.core.values.inputs import InputRecord

_RESTART: Final = "suppose first that it dies to see what a restart would do"


@dataclass(frozen=True, slots=True)
class NodeDies:
    """The node falls silent for good."""

    node_id: NodeId


Change: TypeAlias = NodeDies | NodeJoined | NodeLeaving | Intent
"""The changes that can be supposed."""


@dataclass(frozen=True, slots=True)
class NodeCount:
    """The replicas that a node holds and the slots that it leads, before and after."""

    node_id: NodeId
    held_before: int
    held_after: int
    led_before: int
    led_after: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of supposed changes on the slot table, and on bundles.

    Attributes:
        moved: replicas on nodes that did not hold them, for the whole plan. Everything that a new process gets counts.
        moved_now: those of them that the decision itself would move.
        rows_waiting: planned rows that the decision would leave for later, by the pace.
        least_moved: the proven least number of moves; None if the slot policy proves nothing.
        leader_changes: slots that another node would lead.
        least_leader_changes: the proven least number; None if the slot policy proves nothing.
        counts: one for every node that holds something before or after, by name.
        rows: slots that would change, before and after. A part of a split slot starts with the row of its slot.
        bundles: bundles that the decision itself would change, by their ids, before and after; None for none.
        bundle_orders: the orders for bundles that would be given.
        shortfalls: what the slot policy was asked for and cannot do, one sentence each.
        refusals: why changes are impossible, one sentence each.
        answers: the answers that the intents would get.

    If some changes are impossible or contradict each other, nothing is planned for the others.
    """

    moved: int
    moved_now: int
    rows_waiting: int
    least_moved: int | None
    leader_changes: int
    least_leader_changes: int | None
    counts: tuple[NodeCount, ...]
    rows: tuple[tuple[Slot, Slot], ...]
    bundles: tuple[tuple[str, Bundle | None, Bundle | None], ...]
    bundle_orders: tuple[BundleOrder, ...]
    shortfalls: tuple[str, ...]
    refusals: tuple[str, ...]
    answers: tuple[IntentAnswered, ...]

    @property
    def refused(self) -> bool:
        """Whether some of the changes are impossible."""
        return bool(self.refusals or unwanted_answers(self.answers))


def what_if(
    state: State,
    observations: Observations,
    changes: Sequence[Change],
    policies: SlotPolicies = BUILT_IN_POLICIES,
) -> tuple[Draft, tuple[str, ...]]:
    """The draft of the decision that these changes would cause together, and why any of them are impossible.

    Without changes it is the draft of an immediate plan. The draft includes everything that would be decided along with
    the changes. If some of them are impossible or contradict each other, nothing is planned, because a plan for the
    rest would answer another question.
    """
    now_ms = log_time_of_question_ms(state, observations)
    draft = Draft(state)
    release_former_silence_limit(draft, observations)
    refusals: list[str] = []
    asked: list[InputRecord] = []
    for number, change in enumerate(changes):
        match change:
            case NodeDies(node_id=node_id):
                refusals += _fence(draft, node_id, now_ms)
            case Intent():
                asked.append(InputRecord(Coordinates(INTENTS, 0, number, now_ms), change, b""))
            case NodeJoined(node_id=node_id) if _lives(draft.state, node_id):
                refusals.append(f"node {node_id!r} lives already; {_RESTART}")
            case _:
                record = InputRecord(Coordinates(MEMBERSHIP, 0, number, now_ms), change, b"")
                refusal = take_membership(draft, record, observations, now_ms)
                refusals += [refusal.detail] if refusal is not None else []
    take_intents(draft, asked, operation_context(observations, policies, now_ms))
    if refusals or unwanted_answers(draft.events):
        return draft, tuple(refusals)
    if not changes:
        plan_ownership(draft, observations, policies, now_ms)
    elif draft.events:
        plan_what_is_due(draft, observations, policies, now_ms)
    return draft, tuple(refusals)


def unwanted_answers(events: Iterable[Event]) -> tuple[IntentAnswered, ...]:
    """The answers to intents that were refused, or superseded by others of the same decision."""
    answers = (event for event in events if isinstance(event, IntentAnswered))
    return tuple(answer for answer in answers if answer.outcome is not IntentOutcome.DONE)


def effect_of(draft: Draft, refusals: tuple[str, ...] = ()) -> Effect:
    """The changes of a draft to the slot table and to bundles, without what a plan in flight has still to move."""
    before = draft.before.slots.table
    before = (*before, *split_parts(before, len(draft.state.slots.table), draft.epoch))
    # A plan that is carried out in steps is shown as a whole.
    planned = draft.state.slots.planned if draft.state.slots.planned != draft.before.slots.planned else {}
    after = tuple(planned.get(slot.slot_id, slot) for slot in draft.state.slots.table)
    rows = tuple((old, new) for old, new in zip(before, after, strict=True) if old != new)
    held = without_nodes(before, renewed_by(draft.events))
    certificate = draft.certificate
    return Effect(
        moved=_moved(held, after),
        moved_now=_moved(held, draft.state.slots.table),
        rows_waiting=len(planned),
        least_moved=certificate.least_moved if certificate else None,
        leader_changes=sum(old.leader != new.leader for old, new in zip(held, after, strict=True)),
        least_leader_changes=certificate.least_leader_changes if certificate else None,
        counts=_counts(before, after),
        rows=rows,
        bundles=_changed_bundles(draft.before.bundles.by_id, draft.state.bundles.by_id),
        bundle_orders=tuple(
            order for event in draft.events if isinstance(event, BundleOrdersGiven) for order in event.orders
        ),
        shortfalls=certificate.shortfalls if certificate else (),
        refusals=refusals,
        answers=tuple(event for event in draft.events if isinstance(event, IntentAnswered)),
    )


def _changed_bundles(
    before: Mapping[str, Bundle], after: Mapping[str, Bundle]
) -> tuple[tuple[str, Bundle | None, Bundle | None], ...]:
    rows = ((bundle_id, before.get(bundle_id), after.get(bundle_id)) for bundle_id in sorted({*before, *after}))
    return tuple(row for row in rows if row[1] != row[2])


def _lives(state: State, node_id: NodeId) -> bool:
    node = state.membership.nodes.get(node_id)
    return node is not None and node.lives


def _moved(held: tuple[Slot, ...], after: tuple[Slot, ...]) -> int:
    """Number of replicas on nodes that did not hold them before."""
    return sum(len(set(new.replicas) - set(old.replicas)) for old, new in zip(held, after, strict=True))


def _fence(draft: Draft, node_id: NodeId, now_ms: int) -> list[str]:
    node = draft.state.membership.nodes.get(node_id)
    if node is None:
        return [unknown_node(draft.state, node_id).detail]
    if not node.lives:
        return [f"node {node_id!r} is {node.status.value} already"]
    silence_ms = draft.state.cluster.silence_limit_ms
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

"""Answers to intents, and the sentences in them that several operations share."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.log.order_checks import new_problems
from controlplane.core.log.state import State
from controlplane.core.membership.node import Node, NodeStatus
from controlplane.core.operations.kept_slots import kept_slots, kept_text
from controlplane.core.operations.operation_context import OperationContext
from controlplane.core.operations.slot_numbers import named_slots
from controlplane.core.slots.policy_contract import OrderKind, SlotPolicies, supports
from controlplane.core.values.identifiers import NodeId

_NAMES_SHOWN: Final = 5
_PROBLEMS_SHOWN: Final = 3


class Answer(NamedTuple):
    """The answer to an intent: the outcome, and a sentence for operators."""

    outcome: IntentOutcome
    detail: str


def done(detail: str) -> Answer:
    """The answer to an intent whose effect holds, now or already before."""
    return Answer(IntentOutcome.DONE, detail)


def refused(detail: str) -> Answer:
    """The answer to an intent that has no effect."""
    return Answer(IntentOutcome.REFUSED, detail)


def some_of(names: Iterable[str]) -> str:
    """The first names in sorted order, and how many more there are; for messages."""
    known = sorted(names)
    more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    return (", ".join(known[:_NAMES_SHOWN]) or "none") + more


def unknown_node(state: State, name: NodeId) -> Answer:
    """The refusal of a node that the cluster does not know."""
    known = [node_id for node_id, node in state.membership.nodes.items() if node.status is not NodeStatus.LEFT]
    return refused(f"node {name!r} is unknown; known are {some_of(known)}")


def gone(node: Node) -> str:
    """How a node that does not live is gone: the end of a sentence that begins with it."""
    return "has left" if node.status is NodeStatus.LEFT else f"is {node.status.value}"


def unless_contradicting(draft: Draft, events: Iterable[Event], detail: str) -> Answer:
    """Add the events and answer done, or refuse if they would add a contradiction between standing orders."""
    added = list(events)
    trial = draft.fork()
    for event in added:
        trial.add(event)
    problems = new_problems(draft.state, trial.state)
    if problems:
        more = f" and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        return refused("; ".join(problems[:_PROBLEMS_SHOWN]) + more)
    for event in added:
        draft.add(event)
    return done(detail)


def idle_pins(state: State, name: NodeId, until: str) -> str:
    """The part of an answer that says that a node's pins have no effect; empty if it has none."""
    slots = {pin.slot_id for pin in state.slots.pins if pin.node_id == name}
    if not slots:
        return ""
    return f"; its pins of {named_slots(slots)} have no effect until it is {until} or they are unpinned"


def unheeded(policies: SlotPolicies, name: str, ordered: Collection[OrderKind]) -> list[OrderKind]:
    """Those of these kinds of orders that the slot policy ignores; none if the policy is not known."""
    return [kind for kind in OrderKind if kind in ordered and not supports(policies, name, kind)]


def and_kept(answer: Answer, state: State, name: NodeId, context: OperationContext) -> Answer:
    """The answer to an order that relieves a node, with the slots that the node has to keep."""
    if answer.outcome is not IntentOutcome.DONE or not state.membership.can_relieve(name):
        return answer
    supports_exclusions = supports(context.policies, state.cluster.policy.slot_policy, OrderKind.SLOT_EXCLUSIONS)
    kept = kept_text(kept_slots(state, name, supports_exclusions=supports_exclusions))
    return answer._replace(detail=f"{answer.detail}; it {kept}") if kept else answer

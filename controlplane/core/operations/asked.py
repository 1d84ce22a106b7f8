"""What an operation is given and what it answers: shared by everything that operators can ask for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeStatus
from controlplane.core.membership.observations import Observations
from controlplane.core.operations.kept_slots import kept_slots, kept_text
from controlplane.core.operations.order_checks import new_problems
from controlplane.core.operations.slot_numbers import named_slots
from controlplane.core.slots.policy_contract import OrderKind, SlotPolicies, heeds
from controlplane.core.values.identifiers import ControllerId, NodeId

_NAMES_SHOWN: Final = 5
_PROBLEMS_SHOWN: Final = 3


class Answer(NamedTuple):
    """How an intent is answered: the outcome, and why, for people."""

    outcome: IntentOutcome
    detail: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an operation may know beside the state.

    Attributes:
        policies: the slot policies that this controller knows.
        now_ms: log time.
        heartbeats_offset: next offset of ``heartbeats`` partition 0, or ``UNDATED_OFFSET``; see ``dating_offset``.
        ticking: the controllers that tick.
    """

    policies: SlotPolicies
    now_ms: int
    heartbeats_offset: int
    ticking: frozenset[ControllerId]


def circumstances_of(observations: Observations, policies: SlotPolicies, now_ms: int) -> Circumstances:
    """What an operation may know at these observations."""
    return Circumstances(policies, now_ms, observations.dating_offset, observations.ticking)


Arguments = Mapping[str, str]


def done(detail: str) -> Answer:
    """It has the effect that was asked for, or had it before."""
    return Answer(IntentOutcome.DONE, detail)


def refused(detail: str) -> Answer:
    """It has no effect."""
    return Answer(IntentOutcome.REFUSED, detail)


def some_of(names: Iterable[str]) -> str:
    """A few names, sorted, and how many more there are; for messages."""
    known = sorted(names)
    more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    return (", ".join(known[:_NAMES_SHOWN]) or "none") + more


def unknown_node(state: State, name: NodeId) -> Answer:
    """The refusal of a name that no member bears."""
    known = [node_id for node_id, node in state.membership.nodes.items() if node.status is not NodeStatus.LEFT]
    return refused(f"node {name!r} is unknown; known are {some_of(known)}")


def unless_contradicting(draft: Draft, events: Iterable[Event], detail: str) -> Answer:
    """Add the events, unless operators' orders would contradict each other more than they do already."""
    asked = list(events)
    trial = draft.fork()
    for event in asked:
        trial.add(event)
    problems = new_problems(draft.state, trial.state)
    if problems:
        more = f" and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        return refused("; ".join(problems[:_PROBLEMS_SHOWN]) + more)
    for event in asked:
        draft.add(event)
    return done(detail)


def sleeping_pins(state: State, name: NodeId, until: str) -> str:
    """What becomes of the pins of a node that is to be relieved, to be added to an answer; empty if it has none."""
    slots = {pin.slot_id for pin in state.slots.pins if pin.node_id == name}
    if not slots:
        return ""
    return f"; its pins of {named_slots(slots)} sleep until it is {until} or they are unpinned"


def unheeded(policies: SlotPolicies, name: str, ordered: Collection[OrderKind]) -> list[OrderKind]:
    """The kinds of orders among these at which the slot policy of that name does not look; none if it is not known."""
    return [kind for kind in OrderKind if kind in ordered and not heeds(policies, name, kind)]


def and_kept(answer: Answer, state: State, name: NodeId, circumstances: Circumstances) -> Answer:
    """The answer to an order that relieves a node, with the slots that the node keeps all the same."""
    if answer.outcome is not IntentOutcome.DONE or not state.membership.can_relieve(name):
        return answer
    heeds_exclusions = heeds(circumstances.policies, state.cluster.policy.slot_policy, OrderKind.SLOT_EXCLUSIONS)
    kept = kept_text(kept_slots(state, name, heeds_exclusions=heeds_exclusions))
    return answer._replace(detail=f"{answer.detail}; it {kept}") if kept else answer

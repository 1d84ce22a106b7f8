"""What an operation is given and what it answers: shared by everything that operators can ask for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from controlplane.core.draft import Draft
from controlplane.core.events import Event, IntentOutcome
from controlplane.core.identifiers import NodeId
from controlplane.core.membership import NodeStatus
from controlplane.core.order_checks import order_problems
from controlplane.core.slot_policy import SlotPolicies
from controlplane.core.state import State

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
        heartbeats_offset: next offset of ``heartbeats`` partition 0.
    """

    policies: SlotPolicies
    now_ms: int
    heartbeats_offset: int


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
    known = [node_id for node_id, node in state.nodes.items() if node.status is not NodeStatus.LEFT]
    return refused(f"node {name!r} is unknown; known are {some_of(known)}")


def unless_contradicting(draft: Draft, events: Iterable[Event], detail: str) -> Answer:
    """Add the events, unless operators' orders would contradict each other more than they do already."""
    asked = list(events)
    trial = draft.fork()
    for event in asked:
        trial.add(event)
    known = set(order_problems(draft.state))
    problems = [problem for problem in order_problems(trial.state) if problem not in known]
    if problems:
        more = f" and {len(problems) - _PROBLEMS_SHOWN} more" if len(problems) > _PROBLEMS_SHOWN else ""
        return refused("; ".join(problems[:_PROBLEMS_SHOWN]) + more)
    for event in asked:
        draft.add(event)
    return done(detail)

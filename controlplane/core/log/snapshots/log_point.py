"""A place in the decision log with the state there: where a snapshot is taken, and where following begins."""

from dataclasses import dataclass

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq

_NO_SEQ = Seq(0)


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A place in the decision log, between two decisions.

    Attributes:
        state: after the decision before it.
        last_decision_offset: where that decision's first record stands; -1 before the first decision.
        next_offset: where the next decision's first record can stand at the earliest.
        read_bytes: how much of the log the reader has read by then, counted from wherever it began.
        asked_for: the newest decision that answers an intent to take a snapshot; 0 without any.
    """

    state: State
    last_decision_offset: int = -1
    next_offset: int = 0
    read_bytes: int = 0
    asked_for: Seq = _NO_SEQ


def asks_for_snapshot(decision: Decision) -> bool:
    """Whether an intent to take a snapshot was answered *done* by this decision."""
    return any(
        isinstance(event, IntentAnswered)
        and event.kind == IntentKind.TAKE_SNAPSHOT.value
        and event.outcome is IntentOutcome.DONE
        for event in decision.events
    )

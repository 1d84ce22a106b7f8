"""A place in the decision log with the state there: where a snapshot is taken, and where following starts."""

from dataclasses import dataclass

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import Seq

_NO_SEQ = Seq(0)


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A place between two decisions of the log.

    Attributes:
        state: the state after the preceding decision.
        last_decision_offset: offset of the first record of that decision; -1 before the first decision.
        next_offset: the least offset at which the next decision can start.
        read_bytes: bytes of the log that the reader has read so far, from its own start.
        asked_for: seq of the newest decision that answers an intent to take a snapshot; 0 without any.
    """

    state: State
    last_decision_offset: int = -1
    next_offset: int = 0
    read_bytes: int = 0
    asked_for: Seq = _NO_SEQ


def asks_for_snapshot(decision: Decision) -> bool:
    """Whether this decision answered an intent to take a snapshot with *done*."""
    return any(
        isinstance(event, IntentAnswered)
        and event.kind == IntentKind.TAKE_SNAPSHOT.value
        and event.outcome is IntentOutcome.DONE
        for event in decision.events
    )

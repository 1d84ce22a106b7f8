"""Events of intents: each intent is answered by one event."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import IntentId


class IntentOutcome(Enum):
    """The outcome of an intent."""

    DONE = "done"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    """Later intents of the same decision contradict it, so it had no effect."""


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class IntentAnswered:
    """An intent was answered."""

    intent_id: IntentId
    kind: str
    principal: str
    outcome: IntentOutcome
    detail: str


IntentEvent: TypeAlias = IntentAnswered

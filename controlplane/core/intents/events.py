"""Events on intents: every intent is answered once."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import IntentId


class IntentOutcome(Enum):
    """How an intent was answered."""

    DONE = "done"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    """A later intent of the same decision contradicts it, so it had no effect."""


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class IntentAnswered:
    """An operator's intent and its answer."""

    intent_id: IntentId
    kind: str
    principal: str
    outcome: IntentOutcome
    detail: str


IntentEvent: TypeAlias = IntentAnswered

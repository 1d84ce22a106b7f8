"""The image of the intents: which of them were answered."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from controlplane.core.intents.events import IntentAnswered
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import IntentId

ANSWERED_INTENTS_KEPT: Final = 10_000
"""How many ids of answered intents are kept, so that none is carried out twice: far more than the topic retains."""


@dataclass(frozen=True)
class IntentsImage:
    """The part of the state that is about intents.

    Attributes:
        answer_count: how many intents were ever answered.
        answered: the ids of the last of them, by the number of the answer.
    """

    answer_count: int = 0
    answered: Entries[int, IntentId] = field(default_factory=Entries)

    def has_answered(self, intent_id: IntentId) -> bool:
        """Whether the intent of this id was answered, as far as that is kept."""
        return intent_id in self._ids

    @cached_property
    def _ids(self) -> frozenset[IntentId]:
        """Made once for all intents that a decision takes up."""
        return frozenset(self.answered.values())


def apply_intent_event(image: IntentsImage, event: IntentAnswered) -> IntentsImage:
    """The image after one event: the id is kept, and the oldest one forgotten if there are too many."""
    number = image.answer_count + 1
    answered = image.answered.put([(number, event.intent_id)])
    forgotten = [number - ANSWERED_INTENTS_KEPT] if number > ANSWERED_INTENTS_KEPT else []
    return replace(image, answer_count=number, answered=answered.drop(forgotten))

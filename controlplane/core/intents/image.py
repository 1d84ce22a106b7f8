"""The image of the intents: the ids of those that were answered."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from controlplane.core.intents.events import IntentAnswered
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import IntentId
from controlplane.core.values.image import Image

ANSWERED_INTENTS_KEPT: Final = 10_000
"""Number of ids of answered intents that are kept, so that no intent is carried out twice.

It is far more than the topic retains.
"""


@dataclass(frozen=True)
class IntentsImage(Image):
    """The part of the state that belongs to intents.

    Attributes:
        answer_count: number of intents ever answered.
        answered: ids of the latest answered intents, by the number of their answer.
    """

    answer_count: int = 0
    answered: Entries[int, IntentId] = field(default_factory=Entries)

    def has_answered(self, intent_id: IntentId) -> bool:
        """Whether the intent with this id was answered; False for an id that is no longer kept."""
        return intent_id in self._ids

    @cached_property
    def _ids(self) -> frozenset[IntentId]:
        """The kept ids as a set, computed once for all intents that a decision takes up."""
        return frozenset(self.answered.values())


def apply_intent_event(image: IntentsImage, event: IntentAnswered) -> IntentsImage:
    """The image after one event. Beyond the limit, the oldest id is removed."""
    number = image.answer_count + 1
    answered = image.answered.put([(number, event.intent_id)])
    forgotten = [number - ANSWERED_INTENTS_KEPT] if number > ANSWERED_INTENTS_KEPT else []
    return replace(image, answer_count=number, answered=answered.drop(forgotten))

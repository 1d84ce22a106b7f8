"""When to doubt a Kafka client: it gets nowhere, for long enough that another one had better be tried.

librdkafka connects again by itself, but not always: told once that there are no brokers, which a broker that has just
been fenced says of itself, it forgets where any was, and never asks again (its issue 5301; 5430 and 5593 are other ways
to the same end). Nothing tells the caller. What such a client owes does not come; what another one asks is answered.
"""

from collections.abc import Collection
from typing import Final, Generic, TypeVar

_Place = TypeVar("_Place")

FIRST_PATIENCE_S: Final = 3.0
"""With a client that gets nothing at all: librdkafka finds a broker that comes back within half a second."""
LONGEST_PATIENCE_S: Final = 24.0
"""With one that gets something, but not what is waited for; and where a link is so slow that what is owed takes longer,
so that new clients do not keep it from coming."""
SECOND_LOOK_S: Final = 2.0
"""A broker that has just come back answers whoever asks first: the client that had waited for it gets this long."""


class ClientWatch(Generic[_Place]):
    """What one client owes, and since when: an answer about a place, such as a partition. Times are monotonic seconds.

    Attributes:
        patience_s: how long the client may get nothing at all, where it owes something, before another one is tried. It
            doubles with each that does no better, and halves with whatever comes.
    """

    def __init__(self) -> None:
        """Nothing is owed."""
        self.patience_s = FIRST_PATIENCE_S
        self._owed_since_s: dict[_Place, float] = {}
        self._heard_at_s = float("-inf")
        self._looked_at_s = float("-inf")
        self._suspects: set[_Place] = set()
        self._gets_nothing = False
        self._another_was_answered = False

    def owes(self, place: _Place, now_s: float) -> None:
        """The client owes something about the place from now on, if it does not yet."""
        self._owed_since_s.setdefault(place, now_s)

    def settled(self, place: _Place, now_s: float) -> None:
        """What was owed about the place, if anything was, has come."""
        was_owed = self._owed_since_s.pop(place, None) is not None
        # Once for what came together, and not for what comes unasked: it says less of how fast the client is.
        if was_owed and now_s > self._heard_at_s:
            self.patience_s = max(self.patience_s / 2, FIRST_PATIENCE_S)
        self._heard_at_s = now_s
        self._suspects.discard(place)
        if self._gets_nothing:
            self._suspects.clear()
        self._forget_answer()

    def keep_to(self, places: Collection[_Place]) -> None:
        """Nothing is owed any more about any other place."""
        self._owed_since_s = {place: since_s for place, since_s in self._owed_since_s.items() if place in places}
        self._suspects.intersection_update(places)
        self._forget_answer()

    def is_settled(self, place: _Place) -> bool:
        """Whether nothing is owed about the place."""
        return place not in self._owed_since_s

    def overdue(self, now_s: float) -> list[_Place]:
        """The places about which something is owed for too long: let another client ask, and say how that went.

        Asked again soon there are none: not before :data:`SECOND_LOOK_S` has passed since another one was answered, or
        the patience is over anew.
        """
        gets_nothing = now_s - self._heard_at_s >= self.patience_s
        limit_s = self.patience_s if gets_nothing else LONGEST_PATIENCE_S
        if now_s - self._looked_at_s < (SECOND_LOOK_S if self._another_was_answered else limit_s):
            return []
        overdue = [place for place, since_s in self._owed_since_s.items() if now_s - since_s >= limit_s]
        if overdue:
            self._looked_at_s = now_s
            self._suspects = set(overdue)
            self._gets_nothing = gets_nothing
        return overdue

    def is_lost(self, now_s: float, *, another_was_answered: bool, this_was_answered: bool = False) -> bool:
        """Whether another client is to stand in for this one, which has got nothing since others were last answered.

        Args:
            now_s: when the answer came, or was waited for no longer.
            another_was_answered: whether Kafka answered another client about a place that was overdue.
            this_was_answered: whether it answered this one about something else, so that it has not forgotten where
                Kafka is: only the longest patience is enough for such a client.
        """
        waited_s = max((now_s - self._owed_since_s[place] for place in self._suspects), default=0.0)
        limit_s = LONGEST_PATIENCE_S if this_was_answered else 0.0
        speaks_against_it = another_was_answered and bool(self._suspects) and waited_s >= limit_s
        is_lost = speaks_against_it and self._another_was_answered
        self._another_was_answered = speaks_against_it and not is_lost
        self._looked_at_s = now_s
        return is_lost

    def replaced(self, now_s: float) -> list[_Place]:
        """Another client owes from now on what this one owed; returns the places that it was lost for."""
        self.patience_s = min(2 * self.patience_s, LONGEST_PATIENCE_S)
        self._owed_since_s = dict.fromkeys(self._owed_since_s, now_s)
        lost_for, self._suspects = list(self._suspects), set()
        return lost_for

    def _forget_answer(self) -> None:
        """Where nothing is suspected any more the next suspicion begins anew."""
        self._another_was_answered = self._another_was_answered and bool(self._suspects)

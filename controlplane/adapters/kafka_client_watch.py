"""When to doubt a Kafka client: it gets nowhere, for long enough that another one had better be tried.

librdkafka connects again by itself, but not always: told once that there are no brokers, which a broker that has just
been fenced says of itself, it forgets where any was, and never asks again (its issue 5301; 5430 and 5593 are other ways
to the same end). Nothing tells the caller. What such a client owes does not come; what another one asks is answered.
"""

from collections.abc import Collection
from typing import Final, Generic, TypeVar

_Place = TypeVar("_Place")

FIRST_PATIENCE_S: Final = 3.0
"""librdkafka finds a broker again that comes back within half a second, and another leader soon."""
SECOND_LOOK_S: Final = 1.0
"""A broker that has just come back answers whoever asks first: the client that had waited for it gets this long."""
LONGEST_PATIENCE_S: Final = 24.0
"""Where a link is so slow that what is owed takes longer, new clients must not keep it from coming."""


class ClientWatch(Generic[_Place]):
    """What one client owes, and since when: an answer about a place, such as a partition. Times are monotonic seconds.

    Attributes:
        patience_s: how long the client may owe something before another one is tried. It doubles with each that does no
            better, and is short again once all has come that was waited for too long.
    """

    def __init__(self) -> None:
        """Nothing is owed."""
        self.patience_s = FIRST_PATIENCE_S
        self._owed_since_s: dict[_Place, float] = {}
        self._doubted_at_s: float | None = None
        self._doubted_for: set[_Place] = set()
        self._another_was_answered = False

    def owes(self, place: _Place, now_s: float) -> None:
        """The client owes something about the place from now on, if it does not yet."""
        self._owed_since_s.setdefault(place, now_s)

    def settled(self, place: _Place) -> None:
        """What was owed about the place has come."""
        self._owed_since_s.pop(place, None)
        if place in self._doubted_for:
            self._doubted_for.remove(place)
            if not self._doubted_for:
                self.patience_s = FIRST_PATIENCE_S
                self._another_was_answered = False

    def keep_to(self, places: Collection[_Place]) -> None:
        """Nothing is owed any more about any other place."""
        self._owed_since_s = {place: since_s for place, since_s in self._owed_since_s.items() if place in places}
        self._doubted_for.intersection_update(places)

    def is_settled(self, place: _Place) -> bool:
        """Whether nothing is owed about the place."""
        return place not in self._owed_since_s

    def overdue(self, now_s: float) -> list[_Place]:
        """The places about which something is owed for too long: let another client ask, and say how that went.

        Asked again soon there are none: not before :data:`SECOND_LOOK_S` has passed, or the patience is over anew.
        """
        if not self._owed_since_s:
            return []
        pause_s = SECOND_LOOK_S if self._another_was_answered else self.patience_s
        if self._doubted_at_s is not None and now_s - self._doubted_at_s < pause_s:
            return []
        overdue = [place for place, since_s in self._owed_since_s.items() if now_s - since_s >= self.patience_s]
        if overdue:
            self._doubted_at_s = now_s
            self._doubted_for.update(overdue)
        return overdue

    def is_lost(self, *, another_was_answered: bool) -> bool:
        """Whether another client is to stand in for this one, which has got nothing since others were last answered."""
        is_lost = another_was_answered and self._another_was_answered
        self._another_was_answered = another_was_answered and not is_lost
        return is_lost

    def replaced(self, now_s: float) -> None:
        """Another client owes from now on what this one owed."""
        self.patience_s = min(2 * self.patience_s, LONGEST_PATIENCE_S)
        self._owed_since_s = dict.fromkeys(self._owed_since_s, now_s)

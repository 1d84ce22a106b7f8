"""Decides when a Kafka client has to be replaced (decision 0014), from what the client was expected to deliver.

A client *stalls* if something expected does not arrive for the stall limit. Then a probe asks Kafka through a new
client. A stalled client is replaced when two probes in a row were answered and it still received nothing.

The rule is needed because librdkafka does not always reconnect, and does not report it. A broker that has just been
fenced answers that there are no brokers; a client that asks it then can lose the address of every broker (librdkafka
issue 5301; 5430 and 5593 describe other ways).
"""

from collections.abc import Collection
from typing import Final, Generic, TypeVar

_Place = TypeVar("_Place")

SHORTEST_STALL_LIMIT_S: Final = 3.0
"""For a client that receives nothing at all: librdkafka finds a broker that is back within half a second."""
LONGEST_STALL_LIMIT_S: Final = 24.0
"""For a client that receives something, but not from the place in question. Also the maximum of the doubled limit, for
a link so slow that expected records take longer: new clients must not keep them from arriving."""
SECOND_PROBE_AFTER_S: Final = 2.0
"""Time between the first answered probe and the second. A broker that has just come back answers any client; in this
time the client that waited for it has to receive something as well."""


class StallDetector(Generic[_Place]):
    """What one client is expected to deliver and since when, for each place, such as a partition.

    Times are seconds of a monotonic clock of the caller's choice. Not thread-safe.

    Attributes:
        stall_limit_s: how long a client of which something is expected may receive nothing at all before it is probed.
            It doubles with each replacement and halves, down to the shortest, with each arrival that was expected.
    """

    def __init__(self) -> None:
        """Begin without expectations."""
        self.stall_limit_s = SHORTEST_STALL_LIMIT_S
        self._expected_since_s: dict[_Place, float] = {}
        self._last_arrival_s = float("-inf")
        self._last_probe_s = float("-inf")
        self._suspected: set[_Place] = set()
        self._receives_nothing = False
        self._first_probe_answered = False

    def expect(self, place: _Place, since_s: float) -> None:
        """Expect something from the place; if it is expected already, the earlier time stays."""
        self._expected_since_s.setdefault(place, since_s)

    def arrived(self, place: _Place, now_s: float) -> None:
        """Note that something arrived from the place, so that nothing more is expected from it."""
        was_expected = self._expected_since_s.pop(place, None) is not None
        # Halved once for what arrived together, and only for expected arrivals: others do not show the client's speed.
        if was_expected and now_s > self._last_arrival_s:
            self.stall_limit_s = max(self.stall_limit_s / 2, SHORTEST_STALL_LIMIT_S)
        self._last_arrival_s = now_s
        self._suspected.discard(place)
        if self._receives_nothing:
            self._suspected.clear()
        self._forget_first_probe_without_suspicion()

    def expect_only(self, places: Collection[_Place]) -> None:
        """Drop the expectations of all other places."""
        self._expected_since_s = {
            place: since_s for place, since_s in self._expected_since_s.items() if place in places
        }
        self._suspected.intersection_update(places)
        self._forget_first_probe_without_suspicion()

    def is_expected(self, place: _Place) -> bool:
        """Whether something is expected from the place."""
        return place in self._expected_since_s

    def overdue(self, now_s: float) -> list[_Place]:
        """The places where the client stalls, to be probed now; the result goes to :meth:`must_replace`.

        Also empty for some time after the last probe: for :data:`SECOND_PROBE_AFTER_S` if it was the first answered
        one, otherwise for the stall limit.
        """
        receives_nothing = now_s - self._last_arrival_s >= self.stall_limit_s
        limit_s = self.stall_limit_s if receives_nothing else LONGEST_STALL_LIMIT_S
        if now_s - self._last_probe_s < (SECOND_PROBE_AFTER_S if self._first_probe_answered else limit_s):
            return []
        overdue = [place for place, since_s in self._expected_since_s.items() if now_s - since_s >= limit_s]
        if overdue:
            self._last_probe_s = now_s
            self._suspected = set(overdue)
            self._receives_nothing = receives_nothing
        return overdue

    def must_replace(self, now_s: float, *, leader_answered: bool, client_answered: bool = False) -> bool:
        """Whether a client that has received nothing since the first answered probe has to be replaced.

        Args:
            now_s: when the probe ended.
            leader_answered: whether the leader of an overdue place answered the new client.
            client_answered: whether Kafka answered the stalled client about something else, so that it knows a broker;
                such a client is replaced only after the longest stall limit.
        """
        waited_s = max((now_s - self._expected_since_s[place] for place in self._suspected), default=0.0)
        limit_s = LONGEST_STALL_LIMIT_S if client_answered else 0.0
        is_confirmed = leader_answered and bool(self._suspected) and waited_s >= limit_s
        must_replace = is_confirmed and self._first_probe_answered
        self._first_probe_answered = is_confirmed and not must_replace
        self._last_probe_s = now_s
        return must_replace

    def replaced(self, now_s: float) -> list[_Place]:
        """Expect the same of the new client from now on; return the places where the former client stalled."""
        self.stall_limit_s = min(2 * self.stall_limit_s, LONGEST_STALL_LIMIT_S)
        self._expected_since_s = dict.fromkeys(self._expected_since_s, now_s)
        stalled, self._suspected = list(self._suspected), set()
        return stalled

    def _forget_first_probe_without_suspicion(self) -> None:
        """Reset the probes if no place is suspected any more, so that the next suspicion needs two of its own."""
        self._first_probe_answered = self._first_probe_answered and bool(self._suspected)

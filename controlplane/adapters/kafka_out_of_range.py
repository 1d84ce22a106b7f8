"""Decides how long a reader asks again for an offset that the broker that was asked does not have.

A broker that leads a partition no longer, and was not told so, ends the partition where it last knew its end. A reader
that is further lacks nothing: it has to ask the present leader. librdkafka asks again by itself only if it asked a
follower; what it takes for the leader it believes, until its metadata is replaced. So the reader takes a new client,
which has no metadata. If the offset is lacking for longer than a client takes to learn of a new leader, it is lost.
"""

from typing import Final

from confluent_kafka import KafkaError

from controlplane.core.values.identifiers import TopicPartition

LIMIT_S: Final = 15.0
"""More than the refresh of metadata (10 s), and half as much again: a new client may meet the former leader first."""
_PAUSE_S: Final = 1.0
"""Between two new clients."""


class OutOfRangeRetries:
    """The partitions of one assignment whose position was out of range, and since when. Not thread-safe.

    Times are seconds of a monotonic clock of the caller's choice.
    """

    def __init__(self) -> None:
        """Begin without doubts."""
        self._since_s: dict[TopicPartition, float] = {}
        self._replacement: tuple[float, KafkaError] | None = None

    def may_go_on(self, place: TopicPartition, cause: KafkaError, now_s: float) -> bool:
        """Note that a position is out of range; return whether to ask again, with the next client."""
        since_s = self._since_s.setdefault(place, now_s)
        if now_s - since_s >= LIMIT_S:
            return False
        if self._replacement is None:
            self._replacement = now_s + _PAUSE_S, cause
        return True

    def cause_to_replace(self, now_s: float) -> KafkaError | None:
        """The error because of which the client has to be replaced now, if any; a client is replaced once for it."""
        if self._replacement is None or now_s < self._replacement[0]:
            return None
        cause, self._replacement = self._replacement[1], None
        return cause

    def settled(self, place: TopicPartition) -> None:
        """Note that a record or the end came from the place: the position is in range."""
        self._since_s.pop(place, None)
        if not self._since_s:
            self._replacement = None

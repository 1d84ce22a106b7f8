"""Notices that a controller does not read an input partition any further, although records stand there.

A controller that reads most of its inputs looks healthy, and yet it sees no death, no join or no intent in the
partition that it does not read: its connection to one broker may be gone in one direction, or its client be confused.
It compares how far it has read with the ends of the partitions (:mod:`controlplane.service.topic_ends`). These are last
stable offsets: a transaction that hangs keeps every reader from what stands behind it, and another leader would read no
more.
"""

from collections.abc import Mapping

import structlog

from controlplane.core.election.leading import DEAF_AFTER_MS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.positions import position_key
from controlplane.ports import Clock

_log = structlog.get_logger(__name__)


class DeafnessWatch:
    """Compares what was read with what is known to stand there, on the monotonic clock. Not thread-safe."""

    def __init__(self, clock: Clock) -> None:
        """Begin without knowledge of any partition."""
        self._clock = clock
        self._awaited: dict[TopicPartition, tuple[int, int]] = {}
        self._told: frozenset[TopicPartition] = frozenset()

    def begin_again(self) -> None:
        """Give every partition the whole time again, as for a controller that has just begun to lead."""
        self._awaited = {}

    def look(self, read_to: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """The partitions that have not been read on for too long; changes are logged.

        Args:
            read_to: for each partition that is read the offset before which everything was read.
            ends: for each partition of which Kafka answers now the offset up to which it can be read. The time of a
                partition that is missing begins again: no controller reads what Kafka does not answer.
        """
        now_ms = self._clock.monotonic_ms()
        awaited: dict[TopicPartition, tuple[int, int]] = {}
        for place, offset in read_to.items():
            if place not in ends:  # no controller could read it now
                continue
            end, since_ms = self._awaited.get(place, (0, 0))
            if offset < end:
                awaited[place] = end, since_ms
            elif offset < ends[place]:
                awaited[place] = ends[place], now_ms
        self._awaited = awaited
        deaf = {place for place, (_, since_ms) in awaited.items() if now_ms - since_ms >= DEAF_AFTER_MS}
        self._tell(frozenset(deaf))
        return deaf

    def _tell(self, deaf: frozenset[TopicPartition]) -> None:
        if deaf == self._told:
            return
        self._told = deaf
        if deaf:
            _log.error("partitions are not read on, although records stand there", partitions=_named(deaf))
        else:
            _log.info("every partition is read on again")


def _named(places: frozenset[TopicPartition]) -> list[str]:
    return [position_key(place) for place in sorted(places)]

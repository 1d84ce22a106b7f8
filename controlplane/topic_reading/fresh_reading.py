"""Whether a reader has returned everything that was committed before a moment, also where records never cease.

Kafka reports the end of a partition when a fetch brings no record for as long as the broker keeps it open. Where a
leader commits decision after decision there is no such end. A high watermark that a broker answered after the moment
tells as much: every record that was acknowledged before lies below it, also one of a committed transaction whose marker
is not written yet. A read_committed reader passes an offset only when each transaction before it has ended.
"""

from typing import Final

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PolledBatch

_TOLD_TWICE: Final = 2
"""Batches whose high watermarks are waited for if no end comes. The client keeps that of the last reply, which may be
one of a broker that leads the partition no longer and knows less; the greater one of two counts."""


class FreshReading:
    """Knows the offset up to which one partition has to be read. Not thread-safe.

    Args:
        place: the partition.
    """

    def __init__(self, place: TopicPartition) -> None:
        """Begin now."""
        self._place = place
        self.begin()

    def begin(self) -> None:
        """Let this be the moment. The reader has to fetch anew: what it has received already tells of earlier ones."""
        self._until: int | None = None
        self._told = 0

    def take(self, batch: PolledBatch) -> None:
        """Note what a batch of the new fetches tells of high watermarks, once its records are judged.

        Its own records never reach it: behind the last one stands the end of its transaction. An end counts whenever it
        comes, because the topic may have lost what an earlier fetch told of.
        """
        end, mark = batch.ended.get(self._place), batch.high_watermarks.get(self._place)
        if end is not None:
            self._until = end.high_watermark if self._until is None else min(self._until, end.high_watermark)
            self._told = _TOLD_TWICE
        elif mark is not None and self._told < _TOLD_TWICE:
            self._until = mark if self._until is None else max(self._until, mark)
            self._told += 1

    def holds_at(self, offset: int) -> bool:
        """Whether a reader that has everything before an offset has everything committed before the moment."""
        return self._until is not None and self._told == _TOLD_TWICE and offset >= self._until

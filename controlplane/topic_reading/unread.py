"""The partitions that still have to be read up to the ends that they had when the log was asked; shared by all readers.

An end is an offset that was asked for before the reading, not a moment at which no record follows. Kafka reports the
end of a partition only when a fetch brings nothing, which never happens while a foreign writer keeps appending. An end
that is reported before that offset is not the end: the broker that answers lags behind the one that was asked, or an
open transaction holds readers back.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PartitionEnd, PolledBatch

NO_BARRIER: Final[Mapping[TopicPartition, int]] = MappingProxyType({})


class Unread:
    """Partitions that are not read yet up to an offset each. Not thread-safe.

    A transaction's control record at the end of a partition is never returned to a reader, so the last offset may never
    be seen; in that case the end that the broker reports counts. A position after the end means that the topic was
    recreated, or that the broker that answers lags. Such a partition stays unread; the reader raises an error of its
    own for it if that lasts.

    Attributes:
        places: the partitions that are not read to their ends.
        beyond: those of them of which more was read before than to their ends.
        last_ends: the last reported end of each partition.
    """

    def __init__(
        self,
        begin: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        barrier: Mapping[TopicPartition, int] = NO_BARRIER,
    ) -> None:
        """Begin before the first poll.

        Args:
            begin: the first offset to be read of each partition.
            ends: for each of them the offset before which everything is to be read.
            barrier: the offsets of a barrier: everything before them is to be read as well, whatever end the broker
                answered. See :meth:`controlplane.ports.TransactionalWriter.write_barrier`.
        """
        self._ends = {place: max(ends[place], barrier.get(place, 0)) for place in begin}
        self.places = frozenset(place for place, offset in begin.items() if offset != self._ends[place])
        self.beyond = frozenset(place for place, offset in begin.items() if offset > self._ends[place])
        self.last_ends: dict[TopicPartition, PartitionEnd] = {}

    @property
    def shortfall(self) -> str:
        """A half sentence about the partitions whose reported ends lie before the offsets to be read to; or empty."""
        return "".join(
            f"; the broker that answers ends {place.topic}[{place.partition}] at {end.offset}, before "
            f"{self._ends[place]}: " + ("a transaction is open" if end.awaits_marker else "it lags")
            for place, end in sorted(self.last_ends.items())
            if place in self.places
        )

    def take(self, batch: PolledBatch) -> bool:
        """Note a batch; return whether it brought anything new of a partition that was not read to its end."""
        self.last_ends.update(batch.ended)
        read_to = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in batch.records}
        read_to |= {place: max(end.offset, read_to.get(place, 0)) for place, end in batch.ended.items()}
        reached = {place for place in self.places if read_to.get(place, -1) >= self._ends[place]}
        brought = {TopicPartition(record.topic, record.partition) for record in batch.records}
        has_news = bool(reached) or not self.places.isdisjoint(brought)
        self.places -= reached
        return has_news

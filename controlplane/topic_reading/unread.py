"""The partitions that still have to be read up to the ends that they had when the log was asked; shared by all readers.

An end is an offset that was asked for before the reading, not a moment at which no record follows. Kafka reports the
end of a partition only when a fetch brings nothing, which never happens while a foreign writer keeps appending.
"""

from collections.abc import Mapping

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PolledBatch


class Unread:
    """Partitions that are not read yet up to an offset each. Not thread-safe.

    A transaction's control record at the end of a partition is never returned to a reader, so the last offset may never
    be seen; in that case the end that the broker reports counts. A position after the end means that the topic was
    recreated. Such a partition stays unread, because the reader raises an error of its own for it.

    Attributes:
        places: the partitions that are not read to their ends.
    """

    def __init__(self, begin: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Begin before the first poll.

        Args:
            begin: the first offset to be read of each partition.
            ends: for each of them the offset before which everything is to be read.
        """
        self._ends = ends
        self.places = frozenset(place for place, offset in begin.items() if offset != ends[place])

    def take(self, batch: PolledBatch) -> bool:
        """Note a batch; return whether it brought anything new of a partition that was not read to its end."""
        read_to = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in batch.records}
        has_news = not self.places.isdisjoint(read_to) or not self.places.isdisjoint(batch.ended)
        reached = {place for place, offset in read_to.items() if place in self.places and offset >= self._ends[place]}
        self.places -= batch.ended | reached
        return has_news

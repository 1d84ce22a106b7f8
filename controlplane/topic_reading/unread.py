"""Which partitions still have to be read up to the ends that they had when the log was asked: shared by all readers.

The end is an offset that was asked for before the reading, and not a moment in which nothing follows. Kafka reports the
end of a partition only when a fetch brings nothing: where a foreign writer never pauses, that report never comes.
"""

from collections.abc import Mapping

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PolledBatch


class Unread:
    """Partitions that are not read yet up to an offset each. Not thread-safe.

    Behind a transaction's control record there is no record, so the last offset may never be seen: there the reported
    end counts. A position behind the end means that the topic was recreated; that partition stays unread, because the
    reader's own error tells it.

    Attributes:
        places: the partitions that are not read to their ends.
    """

    def __init__(self, begin: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Begin before the first poll.

        Args:
            begin: the first offset that is read of each partition.
            ends: for each of them the offset before which everything is to be read.
        """
        self._ends = ends
        self.places = frozenset(place for place, offset in begin.items() if offset != ends[place])

    def take(self, batch: PolledBatch) -> bool:
        """Take note of a batch; whether it brought anything new of a partition that was not read to its end."""
        read_to = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in batch.records}
        has_news = not self.places.isdisjoint(read_to) or not self.places.isdisjoint(batch.ended)
        reached = {place for place, offset in read_to.items() if place in self.places and offset >= self._ends[place]}
        self.places -= batch.ended | reached
        return has_news

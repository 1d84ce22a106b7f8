"""Whether a reader has returned everything that was committed before a moment, also where records never cease.

Kafka reports the end of a partition when a fetch brings no record for as long as the broker keeps it open. Where a
leader commits decision after decision there is no such end. A high watermark that a broker answered after the moment
tells as much: every record that was acknowledged before lies below it, also one of a committed transaction whose marker
is not written yet. A read_committed reader passes an offset only when each transaction before it has ended.
"""

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PolledBatch


class FreshReading:
    """Knows the offset up to which one partition has to be read. Not thread-safe.

    Args:
        place: the partition.
    """

    def __init__(self, place: TopicPartition) -> None:
        """Begin now."""
        self._place = place
        self._until: int | None = None

    def begin(self) -> None:
        """Let this be the moment. The reader has to fetch anew: what it has received already tells of earlier ones."""
        self._until = None

    def take(self, batch: PolledBatch) -> None:
        """Note the first high watermark of the new fetches. Call it with each batch before :meth:`holds_at`."""
        if self._until is None:
            end = batch.ended.get(self._place)
            self._until = batch.high_watermarks.get(self._place) if end is None else end.high_watermark

    def holds_at(self, offset: int) -> bool:
        """Whether a reader that has everything before an offset has everything committed before the moment."""
        return self._until is not None and offset >= self._until

"""A reader of a table that is written to without a pause, of which Kafka therefore reports few ends."""

import math

from controlplane.core.values.positions import TABLE_PLACE
from controlplane.ports import LogReader, PolledBatch


class FewEnds:
    """Wraps a reader, and reports so many more ends of the table.

    Attributes:
        ends_left: how many; none when a test sets it to 0.
    """

    def __init__(self, reader: LogReader, ends_left: float = math.inf) -> None:
        self._reader = reader
        self.ends_left = ends_left

    def __getattr__(self, name: str) -> object:
        """Everything else is the reader's."""
        return getattr(self._reader, name)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Hide an end of the table when none is left."""
        batch = self._reader.poll(max_records, timeout_ms)
        if TABLE_PLACE not in batch.ended:
            return batch
        if self.ends_left > 0:
            self.ends_left -= 1
            return batch
        return batch._replace(ended={place: end for place, end in batch.ended.items() if place != TABLE_PLACE})

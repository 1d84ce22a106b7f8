"""A topic into which a foreign writer writes without a pause, as one of its readers sees it."""

from controlplane.config import ClusterConfig
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader

_MOST_POLLS = 200


class CrowdedReader(MemoryLogReader):
    """Each poll finds a foreign record at the end of the topic, so no end of it is ever reported.

    A reading that needs more than 200 polls is taken for one that never ends.
    """

    def __init__(self, cluster: ClusterConfig, broker: MemoryBroker, topic: str, key: bytes = b"foreign") -> None:
        """Read ``topic``, whose foreign records have this key."""
        super().__init__(cluster, broker)
        self._events = MemoryEventWriter(cluster, broker)
        self._topic = topic
        self._key = key
        self._polls = 0

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """One record more than there was."""
        self._polls += 1
        assert self._polls <= _MOST_POLLS, f"no end of {self._topic} was found in {_MOST_POLLS} polls"
        self._events.send(OutgoingRecord(self._topic, self._key, b"garbage %d" % self._polls, 0))
        return super().poll(max_records, timeout_ms)

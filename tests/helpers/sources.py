"""Sources for inspection, and whole topics, with a reader of the test's own."""

from controlplane.adapters.system_clock import SystemClock
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection.source import READ_TIMEOUT_MS, LogSource
from controlplane.ports import LogReader, PolledBatch, RawRecord
from controlplane.testing import VirtualClock
from controlplane.topic_reading.drain import ReadLimits, drain


def source_of(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> LogSource:
    """The reader with the system's clock: a limit of a wait passes in a test as it does for a command."""
    return LogSource(reader, SystemClock(), timeout_ms=timeout_ms)


def source_at_rest(reader: LogReader) -> LogSource:
    """A log that nobody appends to: time passes only while nothing comes, so that no test waits for its end."""
    clock = VirtualClock()
    return LogSource(_AtRest(reader, clock), clock)


class _AtRest:
    """Implements :class:`controlplane.ports.LogReader`; a poll that brings no record takes all its time."""

    def __init__(self, reader: LogReader, clock: VirtualClock) -> None:
        self._reader = reader
        self._clock = clock
        self.partition_count = reader.partition_count
        self.offsets_at_time = reader.offsets_at_time
        self.start_offsets = reader.start_offsets
        self.end_offsets = reader.end_offsets
        self.assign = reader.assign
        self.close = reader.close

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        batch = self._reader.poll(max_records, timeout_ms)
        if not batch.records:
            self._clock.advance(timeout_ms)
        return batch


def everything_in(reader: LogReader, topic: str) -> list[RawRecord]:
    """Every record that is committed in a topic now, in order per partition; the reader is closed."""
    try:
        ends = reader.end_offsets(topic)
        limits = ReadLimits(SystemClock(), READ_TIMEOUT_MS)
        batches = drain(reader, reader.start_offsets(topic), limits, ends)
        return [
            record
            for records in batches
            for record in records
            if record.offset < ends[TopicPartition(topic, record.partition)]
        ]
    finally:
        reader.close()

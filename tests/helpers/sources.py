"""Sources for inspection, and whole topics, with a reader of the test's own."""

from controlplane.adapters.system_clock import SystemClock
from controlplane.core.values.identifiers import TopicPartition
from controlplane.inspection.source import READ_TIMEOUT_MS, LogSource
from controlplane.ports import LogReader, RawRecord
from controlplane.topic_reading.drain import ReadLimits, drain


def source_of(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> LogSource:
    """The reader with the system's clock: a limit of a wait passes in a test as it does for a command."""
    return LogSource(reader, SystemClock(), timeout_ms=timeout_ms)


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

"""What inspection reads from, on a test's own reader."""

from controlplane.adapters.system_clock import SystemClock
from controlplane.inspection.source import READ_TIMEOUT_MS, LogSource
from controlplane.ports import LogReader


def source_of(reader: LogReader, timeout_ms: int = READ_TIMEOUT_MS) -> LogSource:
    """The reader with the system's clock: a limit of a wait passes in a test as it does for a command."""
    return LogSource(reader, SystemClock(), timeout_ms=timeout_ms)

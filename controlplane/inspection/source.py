"""The source of all queries: a reader of the cluster's log, with the clock and the limits of its waits."""

from dataclasses import dataclass
from typing import Final

from controlplane.codec.framing import Framing
from controlplane.ports import Clock, LogReader
from controlplane.topic_reading.drain import ReadLimits

READ_TIMEOUT_MS: Final = 15_000
"""How long a query waits for the next batch before it calls the log unavailable."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """A cluster's log for one query after another. Each query assigns the reader again.

    Attributes:
        reader: of the cluster's topics.
        clock: for the limits of waits.
        framing: how inputs are framed; None if no schema ids of a registry are known.
        timeout_ms: how long to wait for something new.
    """

    reader: LogReader
    clock: Clock
    framing: Framing | None = None
    timeout_ms: int = READ_TIMEOUT_MS

    @property
    def limits(self) -> ReadLimits:
        """The limits of one reading to an end. It fails only if nothing new comes, however long the log is."""
        return ReadLimits(self.clock, self.timeout_ms)

    def close(self) -> None:
        """Close the reader."""
        self.reader.close()

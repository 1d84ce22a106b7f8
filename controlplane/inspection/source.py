"""What inspection reads from: a reader of the cluster's log, with the clock and the limits of its waits."""

from dataclasses import dataclass
from typing import Final

from controlplane.codec.framing import Framing
from controlplane.ports import Clock, LogReader
from controlplane.topic_reading.drain import ReadLimits

READ_TIMEOUT_MS: Final = 15_000
"""How long a query waits for the next batch before it calls the log unavailable."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """A cluster's log for one query after the other; each assigns the reader anew.

    Attributes:
        reader: of the cluster's topics.
        clock: for the limits of waits.
        framing: how inputs are framed; None knows no registry's schema ids.
        timeout_ms: how long to wait for something new.
    """

    reader: LogReader
    clock: Clock
    framing: Framing | None = None
    timeout_ms: int = READ_TIMEOUT_MS

    @property
    def limits(self) -> ReadLimits:
        """Of one reading to an end: a long log may take its time as long as something new comes."""
        return ReadLimits(self.clock, self.timeout_ms)

    def close(self) -> None:
        """Give the reader back."""
        self.reader.close()

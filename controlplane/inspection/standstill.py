"""Whether log time stands still: no controller ticks, so nothing is decided, whatever the last state looks like."""

from dataclasses import dataclass

from controlplane.core.log.state import State
from controlplane.core.values.canonical import CanonicalValue
from controlplane.inspection import readers
from controlplane.inspection.readers import HeartbeatTail
from controlplane.inspection.source import LogSource


@dataclass(frozen=True, slots=True)
class Standstill:
    """How long nothing has been decided, by the clock of the machine that asks.

    Attributes:
        decision_ago_ms: how long ago the last decision was appended.
        tick_ago_ms: how long ago the last tick was; None if none was found at the end of the topic ``heartbeats``.
    """

    decision_ago_ms: int
    tick_ago_ms: int | None

    def document(self) -> dict[str, CanonicalValue]:
        """The fields by name."""
        return {"decision_ago_ms": self.decision_ago_ms, "tick_ago_ms": self.tick_ago_ms}


def read_standstill(source: LogSource, state: State, tail: HeartbeatTail, wall_ms: int) -> Standstill | None:
    """The standstill of log time; None while a tick is not older than the silence limit.

    Args:
        source: the cluster's log.
        state: has the silence limit.
        tail: the end of ``heartbeats``.
        wall_ms: this machine's time when that was read.

    Raises:
        LogUnavailableError: the log did not answer.
    """
    tick_ago_ms = None if tail.tick_ms is None else max(0, wall_ms - tail.tick_ms)
    if tick_ago_ms is not None and tick_ago_ms <= state.cluster.silence_limit_ms:
        return None
    decisions = readers.read_last_decisions(source, 1)
    decided_ms = decisions[-1].append_time_ms if decisions else wall_ms
    return Standstill(max(0, wall_ms - decided_ms), tick_ago_ms)

"""When the next snapshot is due: by what a restart would have to read, by log time, or because an operator asks."""

from dataclasses import dataclass

from controlplane.config import SnapshotConfig
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.values.identifiers import Seq


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """The newest sound snapshot, or that there is none.

    Attributes:
        seq: of its last decision; 0 if there is none.
        decided_at_ms: log time of that decision, or of when it was found that there is none.
        read_bytes: how much this reader had read of the log when it wrote the snapshot, or found it.
    """

    seq: Seq
    decided_at_ms: int
    read_bytes: int


def due(config: SnapshotConfig, last: LastSnapshot, point: LogPoint) -> str:
    """Why a snapshot is due now, in a word for logs; empty if none is."""
    state = point.state
    if point.last_decision_offset < 0 or state.seq <= last.seq:
        return ""
    if point.asked_for > last.seq:
        return "intent"
    if state.seq - last.seq >= config.after_decisions:
        return "decisions"
    if point.read_bytes - last.read_bytes >= config.after_bytes:
        return "bytes"
    return "time" if state.decided_at_ms - last.decided_at_ms >= config.after_ms else ""

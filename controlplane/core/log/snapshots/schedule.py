"""When the next snapshot is due: by bytes that a restart would read, by log time, or on an operator's request."""

from dataclasses import dataclass

from controlplane.config import SnapshotConfig
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.values.identifiers import Seq


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """The newest sound snapshot, or the absence of one.

    Attributes:
        seq: seq of its last decision; 0 if there is none.
        decided_at_ms: log time of that decision, or of the moment at which none was found.
        read_bytes: bytes of the log that this reader had read when it wrote or found the snapshot.
    """

    seq: Seq
    decided_at_ms: int
    read_bytes: int


def due(config: SnapshotConfig, last: LastSnapshot, point: LogPoint) -> str:
    """Why a snapshot is due now, in one word for logs; empty if none is."""
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

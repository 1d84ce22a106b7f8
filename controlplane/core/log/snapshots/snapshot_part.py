"""The record of one part of a snapshot."""

from dataclasses import dataclass

from controlplane.core.values.identifiers import Epoch, Seq, Term


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """One part of a state snapshot. Topic ``snapshots``, key ``snapshot_id/part``.

    Attributes:
        snapshot_id: the same for all parts; see :func:`controlplane.core.log.snapshots.body.snapshot_id`.
        part: 0 to part_count - 1.
        part_count: number of parts of the whole snapshot.
        log_id: the log that it summarises.
        term: term of its last decision.
        seq: seq of its last decision.
        epoch: epoch of its last decision.
        next_decision_offset: the offset at which reading ``decisions`` continues.
        state_digest: digest of the whole state.
        body: this part of the state's canonical form, UTF-8.
        last_decision_offset: offset of the first record of the last decision, which a reader reads back and compares.
        decided_at_ms: log time of the last decision.
        feature_level: the level that a reader has to support.
        code_version: version of the controller that wrote it.
        body_digest: SHA-256 over the joined bodies of all parts.
    """

    snapshot_id: str
    part: int
    part_count: int
    log_id: str
    term: Term
    seq: Seq
    epoch: Epoch
    next_decision_offset: int
    state_digest: str
    body: bytes
    last_decision_offset: int = -1
    decided_at_ms: int = 0
    feature_level: int = 0
    code_version: str = ""
    body_digest: str = ""

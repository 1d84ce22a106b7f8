"""Records that controllers and the pipeline write beside decisions and table rows."""

from dataclasses import dataclass

from controlplane.core.identifiers import Epoch, Seq, Term


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused input with everything needed to look into it. Topic ``dead-letters``, key: the source's coordinates.

    Attributes:
        reason: short stable code, also the counter's label.
        detail: a sentence for people.
        topic: the source topic without the cluster's prefix.
        partition: the source partition.
        offset: the source offset.
        append_time_ms: when the broker appended the input.
        writer: who refused it: a controller's id or ``pipeline``.
        raw: the bytes, cut at 64 KiB.
        raw_length_bytes: their whole length.
    """

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    append_time_ms: int
    writer: str
    raw: bytes
    raw_length_bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bundle that should be split or shed, with the evidence. Topic ``candidates``, key ``bundle_id``.

    Attributes:
        candidate_id: unique for a bundle, an action and the newest report that counted: equal evidence, equal id.
        action: ``split`` or ``shed``.
        bundle_id: which bundle.
        node_id: the owner that reported it.
        rule: the rule's name, for example ``pulsar-modular-split``.
        evidence: measured value, threshold and unit by name, as text.
        window_start_ms: append time of the first report that counted.
        window_end_ms: append time of the last report that counted.
    """

    candidate_id: str
    action: str
    bundle_id: str
    node_id: str
    rule: str
    evidence: dict[str, str]
    window_start_ms: int
    window_end_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """One part of a state snapshot. Topic ``snapshots``, key ``snapshot_id/part``.

    Attributes:
        snapshot_id: the same for all parts; see :func:`controlplane.core.recovery.parts.snapshot_id`.
        part: 0 to part_count - 1.
        part_count: how many parts make the snapshot whole.
        log_id: the log that it summarises.
        term: of the last decision in it.
        seq: of the last decision in it.
        epoch: of the last decision in it.
        next_decision_offset: where reading ``decisions`` goes on.
        state_digest: digest of the whole state.
        body: this part of the state's canonical plain form, UTF-8.
        last_decision_offset: where the first record of the last decision stands, to be read back and compared.
        decided_at_ms: log time of the last decision.
        feature_level: the level that a reader needs.
        code_version: of the controller that wrote it.
        body_digest: SHA-256 over the bodies of all parts, joined.
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

"""A decision: the unit that is committed, explained, replayed and audited."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from controlplane.core.log.events import Event
from controlplane.core.slots.certificate import Certificate
from controlplane.core.values.canonical import digest_hex
from controlplane.core.values.identifiers import ControllerId, Epoch, Seq, Term


class CauseKind(Enum):
    """The reason for which the leader decided; also the label of the decision counter."""

    TERM_OPENED = "term_opened"
    NODE_JOINED = "node_joined"
    NODE_LEAVING = "node_leaving"
    NODE_LEFT = "node_left"
    NODE_EXPIRED = "node_expired"
    EVICTIONS_FROZEN = "evictions_frozen"
    EVICTIONS_RESUMED = "evictions_resumed"
    INTENT = "intent"
    POSITIONS = "positions"
    TABLE_REPUBLISHED = "table_republished"
    PLACEMENT_REFUSED = "placement_refused"
    SLOTS_ARRANGED = "slots_arranged"
    PLAN_CONTINUED = "plan_continued"
    FORMER_SILENCE_LIMIT_ENDED = "former_silence_limit_ended"
    NODES_FORGOTTEN = "nodes_forgotten"
    BUNDLES_HANDED_OFF = "bundles_handed_off"
    SLOTS_HANDED_OFF = "slots_handed_off"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for a decision.

    Attributes:
        kind: see :class:`CauseKind`.
        subject: the node, namespace, controller, intent or slot policy concerned.
        evidence: the input's coordinates as ``topic[partition]@offset``, the measured silence, what the slot policy
            did, or why its answer was refused.
    """

    kind: CauseKind
    subject: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One committed unit of change.

    Attributes:
        seq: the number of the decision: +1 each, no gaps.
        term: the term in which it was made.
        epoch: the routing table's epoch after it; unchanged if no row changes.
        log_id: the log that it belongs to.
        controller_id: the leader that made it.
        feature_level: the least level that a reader has to support.
        decided_at_ms: log time, not a clock; see :mod:`controlplane.core.deciding.log_clock`.
        causes: why it was made, in the order in which the causes were taken up.
        events: what changes, in order.
        positions: next offset per input partition, keyed ``topic[partition]``: where the next leader continues.
        policy_fingerprint: the fingerprint of the policy after its events.
        certificate: the proof of least movement, if slots were planned.
        previous_digest: ``digest`` of the previous decision; empty for the first.
        state_digest: digest of the state after it.
        moves_carried_out: replicas that this decision itself placed on nodes that did not hold them, whichever decision
            planned it.
        leader_changes_carried_out: slots whose leader changes in this decision, including from or to none.
        moves_left: replicas that the plan in flight has not placed yet after it.
    """

    seq: Seq
    term: Term
    epoch: Epoch
    log_id: str
    controller_id: ControllerId
    feature_level: int
    decided_at_ms: int
    causes: tuple[Cause, ...]
    events: tuple[Event, ...]
    positions: Mapping[str, int]
    policy_fingerprint: str
    certificate: Certificate | None
    previous_digest: str
    state_digest: str
    moves_carried_out: int = 0
    leader_changes_carried_out: int = 0
    moves_left: int = 0

    def digest(self) -> str:
        """SHA-256 of the canonical form. The next decision repeats it, which chains the log."""
        return digest_hex(self)

    def with_state_digest(self, state_digest: str) -> "Decision":
        """The same decision with the digest of the state after it."""
        return replace(self, state_digest=state_digest)

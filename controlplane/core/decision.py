"""A decision: the unit that is committed, explained, replayed and audited."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from controlplane.core.events import Event
from controlplane.core.identifiers import ControllerId, Epoch, NodeId, Seq, SlotId, Term
from controlplane.core.plain import digest_hex
from controlplane.core.slot_table import Slot


class CauseKind(Enum):
    """What made the leader decide; also the label of the decision counter."""

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
    SILENCE_LIMIT_SETTLED = "silence_limit_settled"


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of a decision.

    Attributes:
        kind: see :class:`CauseKind`.
        subject: the node, namespace, controller, intent or slot policy that it is about.
        evidence: the input's coordinates as ``topic[partition]@offset``, the measured silence, or what the slot policy
            did, or why its answer was refused.
    """

    kind: CauseKind
    subject: str
    evidence: str


@dataclass(frozen=True, slots=True)
class ReadyHeirs:
    """Who of the holders of a slot without a living leader had reported to have all its data: one of them has to lead.

    Attributes:
        slot_id: the slot.
        node_ids: some of its holders, sorted by name; never none and never all of them.
    """

    slot_id: SlotId
    node_ids: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class LoadStage:
    """What was moved beyond the least, to spread load.

    Attributes:
        before: the greatest load of a node relative to its fair part, before; as ``node_shares`` are written.
        after: the same after it.
        moved: replicas that it moved.
        leader_changes: slots whose leader it changed.
        least_leader_changes: how many it takes at least to bring every node under the target.
    """

    before: str
    after: str
    moved: int
    leader_changes: int
    least_leader_changes: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that the slot plan of a decision moves as little as possible (spec: minimal movement).

    Attributes:
        policy: the slot policy that planned, for example ``minimal``.
        moved: replicas in the planned table that were not there before, over all decisions that carry the plan out.
        least_moved: the proven least number under exact balance.
        leader_changes: slots whose leader is another node than before.
        least_leader_changes: the proven least number, given the replica sets.
        node_prices: one integer price a node, sorted by name: the dual that proves ``least_moved``.
        leader_prices: the same for the slot leaders.
        lost_slots: slots of which no living replica was left; their new replicas start empty.
        ready_heirs: what the planner knew of readiness as far as it decides, by slot id.
        node_shares: each node's fair share of replicas, a whole number or a fraction as ``164/3``.
        leader_shares: each node's fair share of leaderships where it does not follow from ``node_shares``.
        absence_price: the price of the absence of a node where the nodes' capacities are used up.
        zone_violations: replicas in zones that hold enough of their slot already, the least possible (soft zones).
        shortfalls: what was wished and could not be, and why: a sentence each.
        load: what was moved beyond that to spread load; the other fields do not count it.
        rows_before_load: the rows that this changed, as they were before: the table that the other fields prove.
    """

    policy: str
    moved: int
    least_moved: int
    leader_changes: int
    least_leader_changes: int
    node_prices: Mapping[NodeId, int]
    leader_prices: Mapping[NodeId, int]
    lost_slots: tuple[SlotId, ...]
    ready_heirs: tuple[ReadyHeirs, ...] = ()
    node_shares: Mapping[NodeId, str] = field(default_factory=dict)
    leader_shares: Mapping[NodeId, str] = field(default_factory=dict)
    absence_price: int = 0
    zone_violations: int = 0
    shortfalls: tuple[str, ...] = ()
    load: LoadStage | None = None
    rows_before_load: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """One committed unit of change.

    Attributes:
        seq: +1 each, no gaps.
        term: the leadership that decided.
        epoch: the routing table's epoch after this decision; unchanged if no row changes.
        log_id: the log that it belongs to.
        controller_id: who decided.
        feature_level: the least level that a reader needs.
        decided_at_ms: log time ("now" of the observations), not a clock.
        causes: why, in the order in which they were taken up.
        events: what changes, in order.
        positions: next offset per input partition, keyed ``topic[partition]``: where the next leader goes on.
        policy_fingerprint: under which policy.
        certificate: the proof of least movement, if slots were planned.
        previous_digest: ``digest`` of the decision before, empty for the first.
        state_digest: digest of the state after it.
        moves_carried_out: replicas that this decision itself placed on nodes that did not hold them, whichever
            decision planned it.
        leader_changes_carried_out: slots that have another leader after it, also to or from none.
        moves_left: replicas that the plan in flight has still to place after it.
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
        """SHA-256 of the canonical plain form: the next decision repeats it, which chains the log."""
        return digest_hex(self)

    def with_state_digest(self, state_digest: str) -> "Decision":
        """The same decision, sealed with the digest of the state that it leads to."""
        return replace(self, state_digest=state_digest)

"""A decision in the making: events are applied as they are added, so that later steps see what earlier ones changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.apply import apply, stamp
from controlplane.core.log.carried_out import carried_out
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.events import Event
from controlplane.core.log.row_changes import changed_rows
from controlplane.core.log.state import State
from controlplane.core.routing.rows import TableRow
from controlplane.core.slots.certificate import Certificate
from controlplane.core.values.identifiers import Epoch, Seq, TopicPartition
from controlplane.core.values.positions import position_key


@dataclass(frozen=True, slots=True)
class SealedDecision:
    """A decision with the state that it leads to and the rows that it changes; nothing of it is committed yet.

    Attributes:
        decision: what is written to the log.
        state: the state after it.
        rows: the rows that it changes, by key; None removes one.
        republish: whether the other rows are to be written again as well.
    """

    decision: Decision
    state: State
    rows: Mapping[str, TableRow | None]
    republish: bool = False


@dataclass(slots=True)
class Draft:
    """Collects causes and events over a state.

    Attributes:
        before: the state that the decision starts from.
        state: ``before`` with the events so far.
        certificate: the proof of least movement, if slots were planned.
        refresh: slots are to be planned in any case, and every row of the table to be written again.
    """

    before: State
    state: State = field(init=False)
    causes: list[Cause] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    certificate: Certificate | None = None
    refresh: bool = False

    def __post_init__(self) -> None:
        """Begin with no change."""
        self.state = self.before

    @property
    def epoch(self) -> Epoch:
        """The epoch that this decision creates if it changes a row."""
        return Epoch(self.before.epoch + 1)

    def fork(self) -> "Draft":
        """A draft of its own with the same causes and events, to try something out."""
        forked = replace(self, causes=list(self.causes), events=list(self.events))
        forked.state = self.state
        return forked

    def because(self, kind: CauseKind, subject: str, evidence: str) -> None:
        """Note a cause."""
        self.causes.append(Cause(kind, subject, evidence))

    def add(self, event: Event) -> None:
        """Note an event and apply it."""
        self.events.append(event)
        self.state = apply(self.state, event)

    def seal(
        self,
        decided_at_ms: int,
        positions: Mapping[TopicPartition, int],
        *,
        republish: bool = False,
    ) -> SealedDecision:
        """Number, chain and digest the decision.

        Positions never fall, also when this leader has not yet read as far as the one before it had.
        ``republish``, or a refresh, raises the epoch although no row changed, because all rows are written again.
        """
        republish = republish or self.refresh
        rows = changed_rows(self.before, self.state, self.events)
        done = carried_out(self.before, self.state, self.events)
        decision = Decision(
            seq=Seq(self.before.seq + 1),
            term=self.state.term,
            epoch=self.epoch if rows or republish else self.before.epoch,
            log_id=self.state.log_id,
            controller_id=self.state.leader,
            feature_level=self.state.cluster.feature_level or FEATURE_LEVEL,
            decided_at_ms=decided_at_ms,
            causes=tuple(self.causes),
            events=tuple(self.events),
            positions=self._merged(positions),
            policy_fingerprint=self.state.cluster.policy.fingerprint(),
            certificate=self.certificate,
            previous_digest=self.before.last_digest,
            state_digest="",
            moves_carried_out=done.moves,
            leader_changes_carried_out=done.leader_changes,
            moves_left=done.moves_left,
        )
        stamped = stamp(self.state, decision)
        decision = decision.with_state_digest(stamped.digest())
        return SealedDecision(decision, replace(stamped, last_digest=decision.digest()), rows, republish)

    def _merged(self, positions: Mapping[TopicPartition, int]) -> dict[str, int]:
        merged = dict(self.before.positions)
        for place, offset in positions.items():
            key = position_key(place)
            merged[key] = max(offset, merged.get(key, 0))
        return dict(sorted(merged.items()))

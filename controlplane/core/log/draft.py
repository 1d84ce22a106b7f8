"""A draft of a decision: each event is applied when it is added, so that later steps see its effect."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controlplane.core.cluster.events import FeatureLevelRaised
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
    """A decision that is ready to be committed, with the state and the rows that result from it.

    Attributes:
        decision: what is written to the log.
        state: the state after the decision.
        rows: the rows that the decision changes, by key; None removes a row.
        republish: whether all other rows are written again as well.
    """

    decision: Decision
    state: State
    rows: Mapping[str, TableRow | None]
    republish: bool = False


@dataclass(slots=True)
class Draft:
    """The causes and events of a decision in the making, and the state with these events.

    Attributes:
        before: the state before the decision.
        state: ``before`` with the events so far.
        certificate: the proof of least movement, if slots were planned.
        refresh: whether slots are planned in any case, and every row of the table is written again.
    """

    before: State
    state: State = field(init=False)
    causes: list[Cause] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    certificate: Certificate | None = None
    refresh: bool = False

    def __post_init__(self) -> None:
        """Start without events."""
        self.state = self.before

    @property
    def epoch(self) -> Epoch:
        """The epoch after this decision if it changes a row."""
        return Epoch(self.before.epoch + 1)

    def fork(self) -> "Draft":
        """An independent copy with the same causes and events, on which a change can be tried."""
        forked = replace(self, causes=list(self.causes), events=list(self.events))
        forked.state = self.state
        return forked

    def because(self, kind: CauseKind, subject: str, evidence: str) -> None:
        """Add a cause."""
        self.causes.append(Cause(kind, subject, evidence))

    def add(self, event: Event) -> None:
        """Add an event and apply it."""
        self.events.append(event)
        self.state = apply(self.state, event)

    def seal(
        self,
        decided_at_ms: int,
        positions: Mapping[TopicPartition, int],
        *,
        republish: bool = False,
    ) -> SealedDecision:
        """Complete the decision: set its numbers, positions and digests.

        Positions never decrease, even if this leader has read less than its predecessor. ``republish``, or a refresh,
        raises the epoch although no row changed, because all rows are written again.
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
        state = replace(stamped, last_digest=decision.digest())
        return SealedDecision(decision, state, rows, republish or (bool(rows) and self._raises_level()))

    def _raises_level(self) -> bool:
        """Whether rows may have a new version from this decision on. Rows of one epoch are written in one version."""
        return any(isinstance(event, FeatureLevelRaised) for event in self.events)

    def _merged(self, positions: Mapping[TopicPartition, int]) -> dict[str, int]:
        merged = dict(self.before.positions)
        for place, offset in positions.items():
            key = position_key(place)
            merged[key] = max(offset, merged.get(key, 0))
        return dict(sorted(merged.items()))

"""One leadership: what a leader decides and commits in its term."""

from collections.abc import Mapping
from typing import Final

import structlog

from controlplane.config import ROUTING_TABLE
from controlplane.core.deciding.decide import DecideResult, decide, repair_table
from controlplane.core.deciding.expiry import partitions_are_due
from controlplane.core.deciding.observations import Observations, PolicyAsked, read_to
from controlplane.core.election.leading import UNANSWERED_LIMIT_MS
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.state import State
from controlplane.core.operations.leader_operations import resignation_in
from controlplane.core.routing.repair import TableDamage
from controlplane.core.routing.rows import TableRow
from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.identifiers import Coordinates, Term, TopicPartition
from controlplane.core.verification.invariants import check_step
from controlplane.errors import InvariantViolationError, LogUnavailableError
from controlplane.ports import Clock, CommitOutcome, TransactionalWriter
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.input_reader import InputReader
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.publisher import Publication, TablePublisher
from controlplane.service.table_watch import TableWatch

_FLUSH_MS: Final = 200
"""How long a decision waits for the dead letters of membership records and intents that it refuses. Longer than Kafka
takes as a rule; a decision to fence a node must not wait longer for a topic that it does not need."""
_RESOLVE_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class Leadership:
    """The leader's state, its transactional writer and the table that it publishes. Not thread-safe.

    Attributes:
        state: after the last decision that is known to be committed.
        writer: the transactional writer, whose opening fenced every other one.
        has_resigned: whether the last committed decision answers an operator's request that this leader resign.
    """

    def __init__(  # noqa: PLR0917 - one collaborator each
        self,
        state: State,
        slot_policies: SlotPolicies,
        writer: TransactionalWriter,
        publisher: TablePublisher,
        input_reader: InputReader,
        dead_letters: DeadLetterWriter,
        clock: Clock,
        metrics: ControllerMetrics,
    ) -> None:
        """Begin with an open ``writer`` and a ``state`` that was read from the log after the writer was opened."""
        self.state = state
        self.writer = writer
        self.has_resigned = False
        self._slot_policies = slot_policies
        self._publisher = publisher
        self._input_reader = input_reader
        self._dead_letters = dead_letters
        self._clock = clock
        self._metrics = metrics
        self._unresolved: tuple[SealedDecision, Publication, int] | None = None
        self._last_looked_at: tuple[Observations | None, Mapping[TopicPartition, int]] = None, {}
        self._refusal = ""
        self._asked_at_ms = 0
        self._repair_due: TableDamage | None = None
        self._damaged: TopicImage | None = None

    @property
    def term(self) -> Term:
        """The term that this leadership opened."""
        return self.state.term

    def commit(self, sealed: SealedDecision) -> CommitOutcome:
        """Commit one decision with its rows; the state advances only when Kafka has acknowledged the commit."""
        check_step(self.state, sealed.decision, sealed.state, self._slot_policies)
        is_whole = sealed.republish or (bool(sealed.rows) and self._damaged is not None)
        rows = self._whole_table(sealed) if is_whole else sealed.rows
        publication = self._publisher.publication(sealed, rows, is_whole=is_whole)
        began_at_ms = self._clock.monotonic_ms()
        outcome = self.writer.commit(publication.records)
        return self._conclude(outcome, sealed, publication, began_at_ms)

    def resolve(self) -> CommitOutcome:
        """Ask for the result of the commit whose outcome is unknown.

        Raises:
            InvariantViolationError: the outcome of every commit is known.
        """
        if self._unresolved is None:
            raise InvariantViolationError("the outcome of every commit is known")
        sealed, publication, began_at_ms = self._unresolved
        return self._conclude(self.writer.resolve(_RESOLVE_MS), sealed, publication, began_at_ms)

    def decide(self) -> CommitOutcome | None:
        """Decide on the observations and commit the decision.

        Returns:
            The outcome of the commit; None if there is nothing to decide.

        Raises:
            InvariantViolationError: the outcome of a commit is unknown; nothing may be decided until it is known.
        """
        if self._unresolved is not None:
            raise InvariantViolationError("the outcome of a commit is unknown: nothing may be decided before it is")
        self._dead_letters.listen()
        gates: Mapping[TopicPartition, int] = self._dead_letters.gates(self.state.positions)
        observations, former_gates = self._last_looked_at
        if self._input_reader.observations is observations and gates == former_gates:
            # Equal inputs give an equal decision.
            return None if self._repair_due is None else self._repair(self._repair_due)
        result = self._decided(gates)
        if self._are_partitions_due(result.sealed):
            try:
                if self._input_reader.lacks_partitions():
                    self._input_reader.take_in_partitions()
                    result = self._decided(gates)
            except LogUnavailableError as error:
                # The leadership continues as long as commits succeed. Only fencing for silence has to wait.
                _log.warning("deciding waits until Kafka says whether partitions were added", error=str(error))
                return None
        self._show_refusal(result.observations.policy_asked)
        self._dead_letters.write(self._input_reader.refusals.take())
        result, gates = self._before_unwritten(result, gates)
        self._input_reader.decided(result, gates)
        if result.sealed is None:
            self._last_looked_at = self._input_reader.observations, gates
            # Here and not only where nothing was read: heartbeats of many nodes leave no poll without a record.
            return None if self._repair_due is None else self._repair(self._repair_due)
        return self.commit(result.sealed)

    def _decided(self, gates: Mapping[TopicPartition, int]) -> DecideResult:
        return decide(self.state, read_to(self._input_reader.observations, gates), self._slot_policies)

    def _before_unwritten(
        self, result: DecideResult, gates: Mapping[TopicPartition, int]
    ) -> tuple[DecideResult, Mapping[TopicPartition, int]]:
        """Write the dead letters of a result; decide again without the inputs behind those that cannot be written now.

        Each further turn leaves more inputs out, so that there are only as many turns as refused inputs.
        """
        told: set[Coordinates] = set()
        while True:
            self._dead_letters.write(each for each in result.refusals if each.coordinates not in told)
            told.update(each.coordinates for each in result.refusals)
            if result.sealed is None or not self._lower_gates(gates):
                return result, gates
            self._dead_letters.flush(_FLUSH_MS)
            lower = self._lower_gates(gates)
            if not lower:
                return result, gates
            _log.warning("inputs wait behind refused ones whose dead letters cannot be written", behind=lower)
            gates = {**gates, **lower}
            result = self._decided(gates)

    def _lower_gates(self, gates: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offsets that positions must not pass, where they are lower than the given ones."""
        found = self._dead_letters.gates(self.state.positions)
        return {place: offset for place, offset in found.items() if offset < gates.get(place, offset + 1)}

    def watch_table(self, watch: TableWatch) -> None:
        """Let the next decision repair the table if its topic does not hold what was committed.

        Raises:
            LogContinuityError: see :meth:`controlplane.service.table_watch.TableWatch.damage`.
        """
        if self._unresolved is not None or self._repair_due is not None:
            return
        self._repair_due = watch.damage(self.state, self._publisher)
        self._damaged = watch.image if watch.damaged_epoch == self.state.epoch else None
        if self._repair_due is not None:
            self._metrics.foreign_records.labels(ROUTING_TABLE).inc(max(len(self._repair_due.keys), 1))

    def _whole_table(self, sealed: SealedDecision) -> Mapping[str, TableRow | None]:
        """Every row: for a decision that asks for them, or that changes rows while the topic is damaged.

        With the changed rows alone, no reader could show the epoch before the next repair, which may be delayed.
        """
        foreign = () if self._damaged is None else self._publisher.differing_keys(self._damaged)
        return self._publisher.whole_table(sealed.state, foreign)

    def _repair(self, damage: TableDamage) -> CommitOutcome:
        """Commit a decision that writes the whole table again.

        Its positions pass heartbeats only.
        """
        self._input_reader.catch_up_with(self.state)
        self._dead_letters.write(self._input_reader.refusals.take())
        return self.commit(repair_table(self.state, self._input_reader.observations, damage.evidence))

    def _are_partitions_due(self, sealed: SealedDecision | None) -> bool:
        """Whether Kafka is to be asked for new partitions now; if so, the time of asking is noted."""
        now_ms = self._clock.monotonic_ms()
        is_due = partitions_are_due(self.state, sealed, now_ms - self._asked_at_ms)
        if is_due:
            self._asked_at_ms = now_ms
        return is_due

    def _conclude(
        self, outcome: CommitOutcome, sealed: SealedDecision, publication: Publication, began_at_ms: int
    ) -> CommitOutcome:
        was_unresolved, self._unresolved = self._unresolved is not None, None
        match outcome:
            case CommitOutcome.COMMITTED:
                self._publisher.committed(publication)
                if publication.is_whole:
                    self._repair_due = self._damaged = None
                self.state = sealed.state
                self._report(sealed, self._clock.monotonic_ms() - began_at_ms)
                self._input_reader.catch_up_with(self.state)
                self.has_resigned = resignation_in(sealed.decision) is not None
            case CommitOutcome.ABORTED:
                _log.warning("transaction aborted", seq=sealed.decision.seq)
                self._repair_due = None  # the watch requests it again at its own pace; other decisions come first
            case CommitOutcome.UNKNOWN:
                if not was_unresolved:
                    # Decisions wait for it, and nodes read the table no further than up to this transaction.
                    limit_ms = UNANSWERED_LIMIT_MS
                    _log.warning("commit without an answer", seq=sealed.decision.seq, waits_at_most_ms=limit_ms)
                self._unresolved = (sealed, publication, began_at_ms)
            case CommitOutcome.FENCED:
                pass
        return outcome

    def _show_refusal(self, asked: PolicyAsked | None) -> None:
        """Log once that the slot policy cannot make a table, and once that it can again."""
        if asked is None or asked.refusal == self._refusal:
            return
        self._refusal = asked.refusal
        self._metrics.slots_refused.set(1 if asked.refusal else 0)
        if asked.refusal:
            _log.error("slot policy refuses, slots stay unchanged", reason=asked.refusal, seq=asked.seq)
        else:
            _log.info("slot policy no longer refuses", seq=asked.seq)

    def _report(self, sealed: SealedDecision, commit_ms: int) -> None:
        decision = sealed.decision
        self._metrics.commit_seconds.observe(commit_ms / 1_000)
        self._metrics.moves.inc(decision.moves_carried_out)
        for cause in decision.causes:
            self._metrics.decisions.labels(cause.kind.value).inc()
            if cause.kind is CauseKind.PLACEMENT_REFUSED:
                _log.error("slot policy refused", slot_policy=cause.subject, reason=cause.evidence, seq=decision.seq)
        _log.info(
            "decision committed",
            seq=decision.seq,
            epoch=decision.epoch,
            term=decision.term,
            causes=[f"{cause.kind.value} {cause.subject}" for cause in decision.causes[:5]],
            moves_carried_out=decision.moves_carried_out,
            moves_left=decision.moves_left,
            rows=len(sealed.rows),
            commit_ms=commit_ms,
        )

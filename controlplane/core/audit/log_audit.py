"""The audit of a decision log: each decision is taken again from the state before it and its recorded inputs.

``decide`` is a function of the state and of the observations up to the decision's positions. The decision taken again
is therefore equal to the logged one, byte for byte, unless one of the two is wrong. Two inputs of a leader are not in
the topics, so the log records them: what a term began with (:class:`controlplane.core.deciding.decide.Opening`), and
the offsets from which its leader observed.

A decision that is missing is not reported at its place, because a leader may decide late. Whatever it left undone is
due at its next decision too, and is reported there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controlplane.core.cluster.events import ClusterCreated, TermOpened
from controlplane.core.deciding.decide import Opening, decide, open_term, repair_table
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.apply import advance, apply_decision
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.state import State
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.values.positions import place_of
from controlplane.errors import InvariantViolationError, LogContinuityError, StopError

_LONGEST_VALUE: Final = 120
"""Greatest number of characters of a value that are shown."""
_FIELDS_SHOWN: Final = 5
"""Greatest number of fields of one decision that are reported; the others mostly follow from them."""
_ABSENT: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """A place at which a logged decision differs from the one taken again.

    Attributes:
        seq: seq of the decision.
        epoch: the epoch that the decision names.
        term: term of the decision.
        field: path of the field, for example ``events[0].slots[3].leader``; ``decision`` means the whole decision.
        recorded: the value in the log, shortened.
        retaken: the value of the decision taken again, shortened.
        causes: the recorded causes: kind, subject, evidence.
        inputs: the inputs that the decision took up, as ``topic[partition]@first-last``.
    """

    seq: Seq
    epoch: Epoch
    term: Term
    field: str
    recorded: str
    retaken: str
    causes: tuple[str, ...]
    inputs: tuple[str, ...]


class LogAudit:
    """Takes the decisions of a log again, one after the other.

    Args:
        policies: the known slot policies, by name.

    Attributes:
        state: the state after the last decision: the recorded one, or, if the record was altered, the one taken again.
        decisions: number of decisions examined.
        retaken: number of decisions taken again.
        first_retaken: seq of the first decision taken again; None before there is one.
        broken: whether the log cannot be continued, so that the rest cannot be audited.
    """

    def __init__(self, policies: SlotPolicies = BUILT_IN_POLICIES) -> None:
        """Start before the first decision."""
        self._policies = policies
        self._previous: Decision | None = None
        self._instead: State | None = None
        self.state = State()
        self.decisions = 0
        self.retaken = 0
        self.first_retaken: Seq | None = None
        self.broken = False

    @property
    def knows_slot_policy(self) -> bool:
        """Whether the slot policy of the current state is known; without it no decision can be taken again."""
        return not self.state.log_id or self.state.cluster.policy.slot_policy in self._policies

    def follow(self, decision: Decision) -> list[Difference]:
        """Follow the next decision without its inputs; only its digests are compared.

        Raises:
            UnsupportedFeatureLevelError: a newer version wrote it.
        """
        found = self._missing(decision)
        if found:
            return found
        found = self._continued(decision)
        self._continue_from(decision, None, found)
        return found

    def retake_next(self, decision: Decision, observations: Observations) -> list[Difference]:
        """Take the next decision of the log again, and return the differences; none if the log is right.

        Args:
            decision: the recorded decision.
            observations: what its leader had read, up to the decision's positions.

        Raises:
            UnknownSlotPolicyError: the slot policy is not known; see :attr:`knows_slot_policy`.
            UnsupportedFeatureLevelError: a newer version wrote it.
        """
        found = self._missing(decision)
        if found:
            return found
        found = self._continued(decision)
        self.retaken += 1
        self.first_retaken = self.first_retaken or decision.seq
        sealed = None
        try:
            sealed = retake(self.state, decision, observations, self._policies)
        except (LogContinuityError, InvariantViolationError) as error:
            found.append(_difference(self.state, decision, "decision", _causes_text(decision), str(error)))
        else:
            found += differences(self.state, decision, sealed.decision if sealed else None)
        self._continue_from(decision, sealed, found)
        return found

    def break_off(self, error: StopError) -> Difference:
        """End the audit at an error of the log, and return it as a difference of the decision that should follow."""
        self.broken = True
        state = self.state
        return Difference(Seq(state.seq + 1), state.epoch, state.term, "decision", _short(str(error)), _ABSENT, (), ())

    def _missing(self, decision: Decision) -> list[Difference]:
        """The decision that is missing before this one, if any: readers skip a decision that cannot be read."""
        expected = Seq(self.state.seq + 1)
        if self.broken or decision.seq <= expected:
            return []
        self.broken = True
        found = f"decision {decision.seq} comes next: it was removed, or altered so that it cannot be read"
        state = self.state
        return [Difference(expected, state.epoch, state.term, "decision", _short(found), _ABSENT, (), ())]

    def _continued(self, decision: Decision) -> list[Difference]:
        """The difference if the decision does not repeat its predecessor's digest; the chain continues with its own."""
        if self.broken:
            raise InvariantViolationError("the log is broken: what follows cannot be audited")
        self.decisions += 1
        if self._instead is not None and decision.previous_digest == self._instead.last_digest:
            self.state = self._instead  # the decision taken again is the one that was committed
        self._instead = None
        if self._previous is None or decision.previous_digest == self.state.last_digest:
            return []
        repeated = decision.previous_digest
        known, self.state = self.state.last_digest, replace(self.state, last_digest=repeated)
        return [
            _difference(self.state, self._previous, "digest", known, f"{repeated}, as the next decision repeats it")
        ]

    def _continue_from(self, decision: Decision, sealed: SealedDecision | None, found: list[Difference]) -> None:
        """Apply the recorded decision. If it cannot be the committed one, the next decision shows which one was."""
        before, self._previous = self.state, decision
        instead = sealed.state if sealed is not None and found else None
        try:
            self.state = apply_decision(before, decision)
        except (LogContinuityError, InvariantViolationError) as error:
            found[:] = found or [_difference(before, decision, "decision", str(error), "one that continues the log")]
            self.broken = decision.seq != before.seq + 1
            try:
                self.state = advance(before, decision)
            except InvariantViolationError:
                self.broken = self.broken or sealed is None
                self.state = sealed.state if sealed is not None else before
        self._instead = instead


def retake(
    state: State, decision: Decision, observations: Observations, policies: SlotPolicies = BUILT_IN_POLICIES
) -> SealedDecision | None:
    """The decision that a leader takes in the place of the leader of ``decision``; None if it takes none.

    Raises:
        StopError: the decision cannot be taken with these inputs.
    """
    opened = next((event for event in decision.events if isinstance(event, TermOpened)), None)
    if opened is None and not decision.events and decision.causes[:1]:
        cause = decision.causes[0]
        if cause.kind is CauseKind.TABLE_REPUBLISHED:
            return repair_table(state, observations, cause.evidence)
    if opened is None:
        return decide(state, observations, policies).sealed
    created = next((event for event in decision.events if isinstance(event, ClusterCreated)), None)
    opening = Opening(
        new_log=(created.log_id, created.policy) if created else None,
        first_feature_level=opened.feature_level,
        republish=any(cause.kind is CauseKind.TABLE_REPUBLISHED for cause in decision.causes),
        observed_from={place_of(key): offset for key, offset in opened.observed_from.items()},
        cluster=opened.cluster,
    )
    return open_term(state, observations, opened.term, opened.controller_id, opened.code_version, opening)


def differences(state: State, recorded: Decision, retaken: Decision | None) -> list[Difference]:
    """The first few fields in which two decisions over a state differ, digests last."""
    if retaken is None:
        return [_difference(state, recorded, "decision", _causes_text(recorded), _ABSENT)]
    pairs = _different(to_canonical(recorded), to_canonical(retaken), "")
    ordered = sorted(pairs, key=lambda pair: pair[0].endswith("_digest"))
    return [_difference(state, recorded, *pair) for pair in ordered[:_FIELDS_SHOWN]]


def _different(recorded: CanonicalValue, retaken: CanonicalValue, path: str) -> Iterator[tuple[str, str, str]]:
    """The innermost paths at which two canonical forms differ, each with both values."""
    if recorded == retaken and type(recorded) is type(retaken):
        return
    if isinstance(recorded, dict) and isinstance(retaken, dict):
        prefix = f"{path}." if path else ""
        for key in [*recorded, *(key for key in retaken if key not in recorded)]:
            yield from _different(recorded.get(key, _ABSENT), retaken.get(key, _ABSENT), f"{prefix}{key}")
    elif isinstance(recorded, list) and isinstance(retaken, list):
        for index in range(max(len(recorded), len(retaken))):
            pair = [each[index] if index < len(each) else _ABSENT for each in (recorded, retaken)]
            yield from _different(pair[0], pair[1], f"{path}[{index}]")
    else:
        yield path, str(recorded), str(retaken)


def _difference(before: State, decision: Decision, field: str, recorded: str, retaken: str) -> Difference:
    return Difference(
        decision.seq,
        decision.epoch,
        decision.term,
        field,
        _short(recorded),
        _short(retaken),
        tuple(f"{cause.kind.value} {cause.subject}: {cause.evidence}" for cause in decision.causes[:_FIELDS_SHOWN]),
        tuple(_inputs(before.positions, decision.positions)),
    )


def _inputs(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    for place, offset in after.items():
        first = before.get(place, 0)
        if offset > first:
            yield f"{place}@{first}-{offset - 1}"


def _causes_text(decision: Decision) -> str:
    return ", ".join(f"{cause.kind.value} {cause.subject}" for cause in decision.causes) or "a decision without a cause"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."

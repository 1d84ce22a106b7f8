"""The audit of a decision log: each decision is taken again, from the state before it and its inputs.

``decide`` is a function of the state and of what was observed up to the decision's positions, so what comes out is the
decision that stands in the log, byte for byte, or something is wrong with one of them. Two things could not be known
from the log alone, and are recorded: a term's first decision says with what it began
(:class:`controlplane.core.deciding.decide.Opening`), and from where its leader observed.

What a leader does not decide is no difference here: it may look late. But whatever it left undone is due at its next
decision too, and then it is missing.
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
"""Characters of a value that are shown."""
_FIELDS_SHOWN: Final = 5
"""How many fields of one decision are told of; what follows is mostly their consequence."""
_ABSENT: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in a decision that is not what comes out when it is taken again.

    Attributes:
        seq: of the decision.
        epoch: that the decision names.
        term: of the decision.
        field: where in it, for example ``events[0].slots[3].leader``; ``decision`` means all of it.
        recorded: what the log says, cut short.
        retaken: what comes out, cut short.
        causes: the recorded causes: kind, subject, evidence.
        inputs: the inputs that it took up, as ``topic[partition]@first-last``.
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
        policies: the slot policies that are known, by name.

    Attributes:
        state: after the last decision; the recorded one, or, where that was altered, the one taken again.
        decisions: how many were looked at.
        retaken: how many of them were taken again.
        first_retaken: the first of those; None before there is one.
        broken: whether the log does not go on.
    """

    def __init__(self, policies: SlotPolicies = BUILT_IN_POLICIES) -> None:
        """Begin before the first decision."""
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
        """Whether the slot policy of the present state is known here: nobody else can decide under it."""
        return not self.state.log_id or self.state.cluster.policy.slot_policy in self._policies

    def follow(self, decision: Decision) -> list[Difference]:
        """Take the next decision as it stands, because its inputs are no longer known; only its digests are compared.

        Raises:
            UnsupportedFeatureLevelError: a newer version wrote it.
        """
        found = self._missing(decision)
        if found:
            return found
        found = self._continued(decision)
        self._go_on(decision, None, found)
        return found

    def retake_next(self, decision: Decision, observations: Observations) -> list[Difference]:
        """What is different in the next decision of the log when it is taken again; nothing if it is right.

        Args:
            decision: the recorded one.
            observations: of what its leader had read, up to its positions.

        Raises:
            UnknownSlotPolicyError: the slot policy is not known here: see :attr:`knows_slot_policy`.
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
        self._go_on(decision, sealed, found)
        return found

    def break_off(self, error: StopError) -> Difference:
        """The log cannot be read any further: what is wrong with the decision that should follow."""
        self.broken = True
        state = self.state
        return Difference(Seq(state.seq + 1), state.epoch, state.term, "decision", _short(str(error)), _ABSENT, (), ())

    def _missing(self, decision: Decision) -> list[Difference]:
        """The decision that should stand before this one, if there is none: one that cannot be read is passed by."""
        expected = Seq(self.state.seq + 1)
        if self.broken or decision.seq <= expected:
            return []
        self.broken = True
        found = f"decision {decision.seq} comes next: it was removed, or altered so that it cannot be read"
        state = self.state
        return [Difference(expected, state.epoch, state.term, "decision", _short(found), _ABSENT, (), ())]

    def _continued(self, decision: Decision) -> list[Difference]:
        """Whether the decision repeats the digest of the one before; goes on from what it does continue."""
        if self.broken:
            raise InvariantViolationError("the log is broken: what follows cannot be audited")
        self.decisions += 1
        if self._instead is not None and decision.previous_digest == self._instead.last_digest:
            self.state = self._instead  # the one taken again is the one that was committed
        self._instead = None
        if self._previous is None or decision.previous_digest == self.state.last_digest:
            return []
        repeated = decision.previous_digest
        known, self.state = self.state.last_digest, replace(self.state, last_digest=repeated)
        return [
            _difference(self.state, self._previous, "digest", known, f"{repeated}, as the next decision repeats it")
        ]

    def _go_on(self, decision: Decision, sealed: SealedDecision | None, found: list[Difference]) -> None:
        """Take the recorded decision over; where it cannot be what was committed, the next one tells what was."""
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
    """The decision that a leader takes that stands where the leader of ``decision`` stood; None if it takes none.

    Raises:
        StopError: nobody could decide here.
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
    )
    return open_term(state, observations, opened.term, opened.controller_id, opened.code_version, opening)


def differences(state: State, recorded: Decision, retaken: Decision | None) -> list[Difference]:
    """Where two decisions over a state differ, field by field, the digests last; only the first few fields."""
    if retaken is None:
        return [_difference(state, recorded, "decision", _causes_text(recorded), _ABSENT)]
    pairs = _different(to_canonical(recorded), to_canonical(retaken), "")
    ordered = sorted(pairs, key=lambda pair: pair[0].endswith("_digest"))
    return [_difference(state, recorded, *pair) for pair in ordered[:_FIELDS_SHOWN]]


def _different(recorded: CanonicalValue, retaken: CanonicalValue, path: str) -> Iterator[tuple[str, str, str]]:
    """The innermost places at which two canonical forms differ, with what stands there."""
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

"""From a state and observations to the next decision, if there is one to take.

Pure and without memory: equal inputs give an equal decision, whoever runs it and whenever.
"""

from dataclasses import replace
from typing import NamedTuple

from controlplane.config import INTENTS, MEMBERSHIP
from controlplane.core.admission import take_membership
from controlplane.core.asked import Circumstances
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft, SealedDecision
from controlplane.core.events import ClusterCreated, TermOpened
from controlplane.core.expiry import settle_silence_limit, silent_nodes, take_expiries
from controlplane.core.identifiers import ControllerId, NodeId, Term, TopicPartition
from controlplane.core.intents import overrides_self_preservation, take_intents
from controlplane.core.judging import judge_heartbeats
from controlplane.core.observations import Observations, SlotsAsked
from controlplane.core.planning import continue_plan, is_called_for, plan_ownership, plan_slots
from controlplane.core.policy import FEATURE_LEVEL, Policy
from controlplane.core.records import InputRecord, NodeJoined, Refusal
from controlplane.core.slot_policies import BUILT_IN_POLICIES
from controlplane.core.slot_policy import SlotPolicies
from controlplane.core.state import State, position_key


class Verdict(NamedTuple):
    """The outcome of one look at the observations.

    Attributes:
        sealed: the decision to commit, or None.
        refusals: inputs to be dead-lettered, whether or not there is a decision.
        observations: what remains to be looked at, provided that ``sealed`` is committed.
    """

    sealed: SealedDecision | None
    refusals: tuple[Refusal, ...]
    observations: Observations


def decide(state: State, observations: Observations, policies: SlotPolicies = BUILT_IN_POLICIES) -> Verdict:
    """The next decision of the leader whose term is open in ``state``.

    Nothing is decided before the first tick: without one there is no "now". Joins wait for the policy's linger so that
    a burst becomes one epoch; a death is never kept waiting.
    """
    observed_ms = observations.now_ms
    if observed_ms is None:
        return Verdict(None, (), observations)
    # Log time never goes back, also when this leader has read less than the one before it, or the clock was set back.
    now_ms = max(observed_ms, state.decided_at_ms)
    observations, refusals = judge_heartbeats(state, observations, observed_ms)
    draft = Draft(state)
    settle_silence_limit(draft, observations)
    silent = silent_nodes(draft.state, observations)
    if silent or state.evictions_frozen or not _may_linger(state, observations.pending, observed_ms):
        refusals.extend(_take_pending(draft, observations, silent, policies, now_ms))
        observations = replace(observations, pending=())
    answered = None
    if is_called_for(draft):
        plan_ownership(draft, observations, policies, now_ms)
    elif not draft.state.paused and draft.state.plan is None and _is_time_to_ask(draft, observations, policies, now_ms):
        answered = plan_slots(draft, observations, policies, now_ms)
    else:
        continue_plan(draft, observations, now_ms)
    if not draft.causes and now_ms - state.decided_at_ms >= state.policy.positions_interval_ms:
        draft.because(CauseKind.POSITIONS, state.leader, f"{now_ms - state.decided_at_ms} ms since the last decision")
    sealed = draft.seal(now_ms, _positions(observations)) if draft.causes else None
    if sealed is None and answered is not None and not answered.answer.waits:
        observations = replace(observations, slots_asked=SlotsAsked(state.seq, answered.refusal or ""))
    return Verdict(sealed, tuple(refusals), observations)


def settle(state: State, observations: Observations) -> tuple[Observations, tuple[Refusal, ...]]:
    """What a standby does instead of deciding: judge heartbeats, and drop what the leader's decisions have taken up."""
    pending = tuple(record for record in observations.pending if _is_news(state, record))
    observations = replace(observations, pending=pending)
    now_ms = observations.now_ms
    if now_ms is None:
        return observations, ()
    observations, refusals = judge_heartbeats(state, observations, now_ms)
    return observations, tuple(refusals)


def _is_news(state: State, record: InputRecord) -> bool:
    topic, partition, offset, _ = record.coordinates
    return offset >= state.positions.get(position_key(TopicPartition(topic, partition)), 0)


def open_term(
    state: State,
    term: Term,
    controller_id: ControllerId,
    code_version: str,
    *,
    new_log: tuple[str, Policy] | None,
    now_ms: int,
    republish: bool,
) -> SealedDecision:
    """The first decision of a term; with ``new_log`` (log id, policy) also the first of its log.

    ``republish`` writes every row of the table again under a new epoch, because the topic does not show this state.
    """
    draft = Draft(state)
    draft.because(CauseKind.TERM_OPENED, controller_id, f"term {term}")
    if republish:
        draft.because(CauseKind.TABLE_REPUBLISHED, controller_id, "the routing-table topic does not show this state")
    if new_log is not None:
        log_id, policy = new_log
        draft.add(ClusterCreated(log_id, policy))
    draft.add(TermOpened(term, controller_id, code_version, FEATURE_LEVEL, draft.state.policy))
    return draft.seal(max(now_ms, state.decided_at_ms), {}, republish=republish)


def _may_linger(state: State, pending: tuple[InputRecord, ...], now_ms: int) -> bool:
    """Whether everything that is pending is a join that may still wait for others.

    A join from far ahead of the ticks comes from a faster clock, and waiting for the slower one could take for ever.
    """
    if not all(isinstance(record.payload, NodeJoined) for record in pending):
        return False
    return all(abs(now_ms - record.coordinates.append_time_ms) < state.policy.join_linger_ms for record in pending)


def _take_pending(
    draft: Draft, observations: Observations, silent: dict[NodeId, int], policies: SlotPolicies, now_ms: int
) -> list[Refusal]:
    overridden = any(
        overrides_self_preservation(record, draft.state.answered_intents) for record in observations.pending
    )
    refusals = [
        take_membership(draft, record, observations, now_ms)
        for record in observations.pending
        if record.coordinates.topic == MEMBERSHIP
    ]
    if silent or draft.state.evictions_frozen:
        take_expiries(draft, silent, now_ms, overridden=overridden)
    asked = [record for record in observations.pending if record.coordinates.topic == INTENTS]
    intents = take_intents(draft, asked, Circumstances(policies, now_ms, observations.next_heartbeat_offset))
    return [*(refusal for refusal in refusals if refusal is not None), *intents]


def _is_time_to_ask(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> bool:
    """Whether the slot policy wants to be asked although nobody came or went, and might say something new.

    Whatever is decided, it is asked along with it: otherwise decisions about other things could keep it from its turn.
    """
    before = draft.before
    policy = policies.get(draft.state.policy.slot_policy)
    if policy is None or policy.interval_ms is None:
        return False
    if draft.events:
        return True
    asked = observations.slots_asked
    return now_ms - before.decided_at_ms >= policy.interval_ms and (asked is None or asked.seq != before.seq)


def _positions(observations: Observations) -> dict[TopicPartition, int]:
    """Next offsets; what is pending has been taken up, or its offset is still to be read again."""
    positions = dict(observations.positions)
    for record in observations.pending:
        place = TopicPartition(record.coordinates.topic, record.coordinates.partition)
        positions[place] = min(positions[place], record.coordinates.offset)
    return positions

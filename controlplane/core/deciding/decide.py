"""Takes the next decision from a state and observations, if one is due.

The functions are pure: equal inputs give equal decisions, on every controller and at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.cluster.events import ClusterCreated, TermOpened
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.deciding.admission import take_membership
from controlplane.core.deciding.expiry import (
    node_that_waits_for_decision,
    release_former_silence_limit,
    silent_nodes,
    take_expiries,
    unheard_members,
)
from controlplane.core.deciding.forgetting import forget_nodes_gone_for_long
from controlplane.core.deciding.heartbeat_validation import validate_heartbeats
from controlplane.core.deciding.log_clock import log_time_ms, log_time_of_opening_ms, since_last_decision
from controlplane.core.deciding.observations import Observations, PolicyAsked, WithoutEffect, operation_context
from controlplane.core.deciding.planning import plan_what_is_due
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft, SealedDecision
from controlplane.core.log.inputs import DECIDED_TOPICS
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.operations.intent_effects import overrides_self_preservation, take_intents
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.canonical import later_levels
from controlplane.core.values.identifiers import ClusterName, ControllerId, NodeId, Term, TopicPartition
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.core.values.positions import position_key
from controlplane.errors import InvariantViolationError

_OBSERVED_FROM_LEVEL: Final = later_levels(TermOpened)["observed_from"]
"""The feature level from which *term opened* records where its leader began to observe, and its positions."""
_MOST_WITHOUT_EFFECT: Final = 10_000
"""Limit of inputs that are kept although they had no effect, such as joins that nodes repeat."""
_CLUSTER_LEVEL: Final = later_levels(TermOpened)["cluster"]
"""The feature level from which *term opened* records the name of the cluster."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The inputs of a term's first decision that are not in the topics; the decision records them.

    Attributes:
        new_log: id and policy of a log that begins with this term; None if the log exists.
        first_feature_level: the feature level of a new log.
        republish: whether every row is written again under a new epoch, because the table's topic does not show the
            state.
        observed_from: the offset at which the leader began to observe each input partition.
        cluster: the name of the cluster in the leader's configuration.
    """

    new_log: tuple[str, ClusterPolicy] | None = None
    first_feature_level: int = FEATURE_LEVEL
    republish: bool = False
    observed_from: Mapping[TopicPartition, int] = field(default_factory=dict)
    cluster: ClusterName = ""


class DecideResult(NamedTuple):
    """The outcome of one call of :func:`decide`.

    Attributes:
        sealed: the decision to commit, or None.
        refusals: inputs for the dead letter topic, whether or not there is a decision.
        observations: the observations that remain once ``sealed`` is committed.
    """

    sealed: SealedDecision | None
    refusals: tuple[Refusal, ...]
    observations: Observations


def decide(state: State, observations: Observations, policies: SlotPolicies = BUILT_IN_POLICIES) -> DecideResult:
    """The next decision of the leader whose term is open in ``state``.

    Nothing is decided before the first tick, because there is no log time without one. Joins wait for the policy's
    linger so that a burst of them becomes one epoch. A death never waits.
    """
    observations = since_last_decision(state, _without_old_news(state, observations))
    observed_ms = observations.now_ms
    if observed_ms is None:
        return DecideResult(None, (), observations)
    # Log time never goes back, even if this leader has read less than its predecessor, or the broker's clock was set
    # back.
    now_ms = log_time_ms(state, observations)
    observations, refusals = validate_heartbeats(state, observations, observed_ms)
    draft = Draft(state)
    judged: tuple[InputRecord, ...] = ()
    release_former_silence_limit(draft, observations)
    unheard = unheard_members(draft.state, observations)
    silent = silent_nodes(draft.state, observations, unheard)
    if silent or state.membership.evictions_frozen or not _may_linger(state, observations.pending, observed_ms):
        refusals.extend(_take_pending(draft, observations, silent, policies, now_ms))
        judged, observations = observations.pending, replace(observations, pending=())
    answered = plan_what_is_due(draft, observations, policies, now_ms)
    if not draft.causes and now_ms - state.decided_at_ms >= state.cluster.policy.positions_interval_ms:
        draft.because(CauseKind.POSITIONS, state.leader, f"{now_ms - state.decided_at_ms} ms since the last decision")
    if not draft.causes and (node_id := node_that_waits_for_decision(state, observations, unheard)) is not None:
        draft.because(CauseKind.POSITIONS, state.leader, f"dates the silence of {node_id}, heard in another partition")
    if draft.causes:
        forget_nodes_gone_for_long(draft, now_ms)
    sealed = draft.seal(now_ms, _positions(observations)) if draft.causes else None
    if sealed is None and judged:
        before = observations.without_effect
        records = (*(before.records if before is not None else ()), *judged)[-_MOST_WITHOUT_EFFECT:]
        observations = replace(observations, without_effect=WithoutEffect(state.seq, records))
    if sealed is None and answered is not None and not answered.answer.waits:
        observations = replace(observations, policy_asked=PolicyAsked(state.seq, answered.refusal or ""))
    return DecideResult(sealed, tuple(refusals), observations)


def follow_up(state: State, observations: Observations) -> tuple[Observations, tuple[Refusal, ...]]:
    """For a standby: validate heartbeats, and drop the inputs that the leader's decisions have taken up."""
    observations = since_last_decision(state, _without_old_news(state, observations))
    now_ms = observations.now_ms
    if now_ms is None:
        return observations, ()
    observations, refusals = validate_heartbeats(state, observations, now_ms)
    return observations, tuple(refusals)


def is_written(state: State, observations: Observations, refusal: Refusal) -> bool:
    """Whether a leader has certainly written the dead letter of a refused input.

    This is so once the positions have passed the input, and for a heartbeat by the silence limit: it waits that long
    for the join of its node before it is refused.
    """
    topic, partition, offset, append_time_ms = refusal.coordinates
    position = state.positions.get(position_key(TopicPartition(topic, partition)), 0)
    if not state.cluster.has_several_brokers_rules:
        return offset < position and state.decided_at_ms - append_time_ms > state.cluster.silence_limit_ms
    view = observations.partitions.get(partition) if topic == HEARTBEATS else None
    waited_ms = view.clock_before(position) - view.clock_before(offset) if view is not None else 0
    return offset < position and (topic != HEARTBEATS or waited_ms > state.cluster.silence_limit_ms)


def _without_old_news(state: State, observations: Observations) -> Observations:
    """The observations without inputs that a decision has taken up before; a leader may read those later.

    Inputs without effect on an earlier state, which no decision has passed, are pending again.
    """
    judged = observations.without_effect
    again = judged.records if judged is not None and judged.seq != state.seq else ()
    pending = tuple(record for record in (*again, *observations.pending) if _is_news(state, record))
    if again:
        return replace(observations, pending=pending, without_effect=None)
    return observations if len(pending) == len(observations.pending) else replace(observations, pending=pending)


def _is_news(state: State, record: InputRecord) -> bool:
    topic, partition, offset, _ = record.coordinates
    return offset >= state.positions.get(position_key(TopicPartition(topic, partition)), 0)


def open_term(
    state: State,
    observations: Observations,
    term: Term,
    controller_id: ControllerId,
    code_version: str,
    opening: Opening,
) -> SealedDecision:
    """The first decision of a term; with ``opening.new_log``, also the first of its log."""
    draft = Draft(state)
    draft.because(CauseKind.TERM_OPENED, controller_id, f"term {term}")
    if opening.republish:
        draft.because(CauseKind.TABLE_REPUBLISHED, controller_id, "the routing-table topic does not show this state")
    if opening.new_log is not None:
        log_id, policy = opening.new_log
        draft.add(ClusterCreated(log_id, policy))
    level = state.cluster.feature_level or opening.first_feature_level
    observed_from = {position_key(place): offset for place, offset in sorted(opening.observed_from.items())}
    recorded = observed_from if level >= _OBSERVED_FROM_LEVEL else {}
    cluster = opening.cluster if level >= _CLUSTER_LEVEL else ""
    draft.add(TermOpened(term, controller_id, code_version, level, draft.state.cluster.policy, recorded, cluster))
    now_ms = log_time_of_opening_ms(state, observations)
    positions = _positions_of_opening(state, observations, opening.observed_from) if recorded else {}
    return draft.seal(now_ms, positions, republish=opening.republish)


def repair_table(state: State, observations: Observations, evidence: str) -> SealedDecision:
    """The decision of a leader that finds the table's topic damaged: every row is written again.

    It takes up no input and changes nothing else. ``evidence`` says what is wrong with the topic, and is recorded.
    """
    draft = Draft(state)
    draft.because(CauseKind.TABLE_REPUBLISHED, state.leader, evidence)
    now_ms = log_time_ms(state, since_last_decision(state, observations))
    return draft.seal(now_ms, _positions_of_heartbeats(observations), republish=True)


def _positions_of_heartbeats(observations: Observations) -> dict[TopicPartition, int]:
    """The next offsets of ``heartbeats``, which define log time. All other inputs remain to be taken up."""
    return {place: offset for place, offset in observations.positions.items() if place.topic == HEARTBEATS}


def _positions_of_opening(
    state: State, observations: Observations, observed_from: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The next offsets after an opening, which evaluates heartbeats only and takes up no input.

    In an earlier term, the leader may have skipped inputs without effect that other readers still take up. For topics
    other than ``heartbeats``, the positions of the state are therefore kept.
    """
    return {
        place: offset
        if place.topic == HEARTBEATS
        else state.positions.get(position_key(place), observed_from.get(place, 0))
        for place, offset in observations.positions.items()
    }


def _may_linger(state: State, pending: tuple[InputRecord, ...], now_ms: int) -> bool:
    """Whether everything that is pending is a join that may still wait for others.

    A join whose time is far from that of the ticks was stamped by another clock. It does not wait, because a slow clock
    might never catch up with it.
    """
    if not all(isinstance(record.payload, NodeJoined) for record in pending):
        return False
    return all(
        abs(now_ms - record.coordinates.append_time_ms) < state.cluster.policy.join_linger_ms for record in pending
    )


def _take_pending(
    draft: Draft, observations: Observations, silent: dict[NodeId, int], policies: SlotPolicies, now_ms: int
) -> list[Refusal]:
    pending = _by_topic(observations.pending)
    overridden = any(
        overrides_self_preservation(record, draft.state.intents, draft.before.cluster) for record in pending[INTENTS]
    )
    refusals = [take_membership(draft, record, observations, now_ms) for record in pending[MEMBERSHIP]]
    if silent or draft.state.membership.evictions_frozen:
        take_expiries(draft, silent, now_ms, overridden=overridden)
    intents = take_intents(draft, pending[INTENTS], operation_context(observations, policies, now_ms))
    return [*(refusal for refusal in refusals if refusal is not None), *intents]


def _by_topic(pending: tuple[InputRecord, ...]) -> dict[str, list[InputRecord]]:
    """Pending inputs by topic, in order.

    Raises:
        InvariantViolationError: no rule takes up the inputs of a topic. Positions would pass them without an effect.
    """
    inputs: dict[str, list[InputRecord]] = {topic: [] for topic in DECIDED_TOPICS}
    for record in pending:
        if record.coordinates.topic not in inputs:
            raise InvariantViolationError(f"no rule of decide takes up an input of topic {record.coordinates.topic}")
        inputs[record.coordinates.topic].append(record)
    return inputs


def _positions(observations: Observations) -> dict[TopicPartition, int]:
    """The next offsets after a decision: pending inputs are either taken up, or have to be read again."""
    positions = dict(observations.positions)
    for record in observations.pending:
        place = TopicPartition(record.coordinates.topic, record.coordinates.partition)
        positions[place] = min(positions[place], record.coordinates.offset)
    return positions

"""Fences nodes for silence, and holds this back (self-preservation) if too many nodes are silent at once."""

from collections.abc import Iterable
from typing import Final

from controlplane.core.cluster.events import FormerSilenceLimitEnded
from controlplane.core.cluster.policy import SILENCE_MARGIN_MS, FormerSilenceLimit
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft, SealedDecision
from controlplane.core.log.state import State
from controlplane.core.membership.events import EvictionsFrozen, EvictionsResumed, FencingCause, NodeFenced
from controlplane.core.membership.image import Member
from controlplane.core.membership.node import Node, NodeStatus
from controlplane.core.values.identifiers import NodeId

_ASK_AGAIN_MS: Final = 5_000
"""How often Kafka is asked for new partitions while evictions are frozen."""


def silent_nodes(state: State, observations: Observations, unheard: Iterable[Node]) -> dict[NodeId, int]:
    """The :func:`unheard_members` whose silence exceeds the limit: the silence in ms of log time, by name."""
    silent = {}
    for node in unheard:
        silence_ms = observations.silence_ms(node.node_id, node.incarnation)
        silence_ms = min(silence_ms, _time_to_be_heard_ms(state, observations, node))
        if silence_ms > state.cluster.silence_limit_ms:
            silent[node.node_id] = silence_ms
    return dict(sorted(silent.items()))


def unheard_members(state: State, observations: Observations) -> list[Node]:
    """The living members that were not heard within the silence limit, by name, whether they can be judged or not."""
    heard = observations.heard_within(state.cluster.silence_limit_ms)
    return [
        node
        for node_id, node in state.membership.nodes.items()
        if (node_id, node.incarnation) not in heard and node.lives
    ]


def _time_to_be_heard_ms(state: State, observations: Observations, node: Node) -> int:
    if state.cluster.has_several_brokers_rules:
        dated_by = state.membership.date_of(node.node_id)
        return observations.time_to_be_heard_ms(node.node_id, node.incarnation, dated_by)
    since = node.admitted_at_offset, node.changed_at_ms
    return observations.membership_ms(node.node_id, node.incarnation, *since)


def node_that_waits_for_decision(state: State, observations: Observations, unheard: Iterable[Node]) -> NodeId | None:
    """An unheard member that was last heard in another partition than its own: it cannot be judged without a decision.

    Ticks that name the decision date it in both partitions. Without one it could be silent for ever in a quiet cluster.
    """
    if not state.cluster.has_several_brokers_rules:
        return None
    waiting = (
        node.node_id for node in unheard if observations.waits_for_decision(node.node_id, node.incarnation, state.seq)
    )
    return next(waiting, None)


def partitions_are_due(state: State, sealed: SealedDecision | None, since_asked_ms: int) -> bool:
    """Whether to ask Kafka now for new partitions of ``heartbeats``, to which nodes may have moved unnoticed.

    Args:
        state: the leader's state.
        sealed: the decision that it is about to commit, if any.
        since_asked_ms: time since Kafka was last asked because evictions are frozen.

    Returns:
        True before nodes are fenced for silence or evictions are frozen, and at intervals while they are frozen.
    """
    events = sealed.decision.events if sealed is not None else ()
    for_silence = any(
        isinstance(event, EvictionsFrozen) or (isinstance(event, NodeFenced) and event.cause is FencingCause.SILENCE)
        for event in events
    )
    return for_silence or (state.membership.evictions_frozen and since_asked_ms >= _ASK_AGAIN_MS)


def release_former_silence_limit(draft: Draft, observations: Observations) -> None:
    """Let a shortened silence limit take effect, once no node can serve under the former limit any more.

    From feature level 3 on, that is when every member knows the new limit, or has stopped. Below it only time counts: a
    node that is cut off obeys the limit of the last table that it read. It has stopped when that much log time has
    passed since the table named the new limit; the margin covers the time until the table reaches it. The time is
    counted by ticks, as silence is, so that a clock that is set forward does not shorten it.
    """
    former = draft.state.cluster.former_silence_limit
    if former is None:
        return
    if draft.state.cluster.has_several_brokers_rules:
        evidence = _every_member_knows(draft.state, observations, former)
    else:
        passed_ms = observations.passed_ms(former.since_offset)
        limit_ms = draft.state.cluster.policy.silence_limit_ms
        is_over = passed_ms >= former.limit_ms + SILENCE_MARGIN_MS
        evidence = f"{passed_ms} ms of log time under {limit_ms} ms instead of {former.limit_ms} ms" if is_over else ""
    if evidence:
        draft.because(CauseKind.FORMER_SILENCE_LIMIT_ENDED, draft.state.log_id, evidence)
        draft.add(FormerSilenceLimitEnded(draft.state.cluster.policy.silence_limit_ms))


def _every_member_knows(state: State, observations: Observations, former: FormerSilenceLimit) -> str:
    """The evidence that no member can serve under a former limit; empty if one can.

    A member knows the new limit if its heartbeat carries the epoch that shows it, or a later one. One that has no
    table, or is cut off, has stopped when the former limit has passed in its home partition. One that is heard and
    carries an earlier epoch reads its table from a broker that does not know better, and may serve by it.
    """
    epoch, enough_ms = state.cluster.limit_shortened_in, former.limit_ms + SILENCE_MARGIN_MS
    living = [node for node in state.membership.nodes.values() if node.lives]
    cut_off = 0
    for node in living:
        carried = observations.carried_epoch(node.node_id, node.incarnation, within_ms=enough_ms)
        if carried is not None and carried >= epoch:
            continue
        if carried or observations.home_of(node.node_id).since_epoch_ms(epoch) < enough_ms:
            return ""
        cut_off += 1
    return f"epoch {epoch} is known to {len(living) - cut_off} members, and {cut_off} were not heard for {enough_ms} ms"


def take_expiries(draft: Draft, silent: dict[NodeId, int], now_ms: int, *, overridden: bool) -> None:
    """Fence the silent nodes that are due, or freeze evictions if too many are silent (Eureka's self-preservation).

    Within a window at most a part of the nodes is fenced, and at least one may be. The first node of a window is due at
    its limit, so that a single death is noticed at once. Further ones are due one heartbeat interval later: if the
    whole fleet was cut off at once, all of it is silent by then, although its heartbeats are spread over the interval.
    """
    if not draft.state.cluster.has_several_brokers_rules:
        _take_expiries_of_former_levels(draft, silent, now_ms, overridden=overridden)
        return
    # What this same decision has removed or superseded is neither fenced nor counted.
    silent = {node_id: silence_ms for node_id, silence_ms in silent.items() if _is_member_still(draft, node_id)}
    fenced = _fenced_within_window(draft.state, now_ms)
    allowed = _most_fenced_in_window(draft.state, fenced) - len(fenced)
    if not _go_on(draft, silent, max(allowed, 0), overridden=overridden):
        return
    limit_ms = draft.state.cluster.silence_limit_ms + draft.state.cluster.heartbeat_interval_ms
    due = {node_id for node_id, silence_ms in silent.items() if overridden or silence_ms > limit_ms}
    if silent and not fenced:
        due.add(max(sorted(silent), key=silent.__getitem__))
    for node_id in sorted(due):
        _fence(draft, node_id, silent[node_id], now_ms)


def _is_member_still(draft: Draft, node_id: NodeId) -> bool:
    node = draft.state.membership.nodes[node_id]
    return node.lives and node.incarnation == draft.before.membership.nodes[node_id].incarnation


def _fenced_within_window(state: State, now_ms: int) -> frozenset[Member]:
    """The processes that were fenced for silence within the window, also if their nodes live again."""
    since_ms = now_ms - state.cluster.policy.protection_window_ms
    lately = state.membership.fenced_lately.items()
    return frozenset(member for member, at_ms in lately if at_ms >= since_ms)


def _most_fenced_in_window(state: State, fenced: frozenset[Member]) -> int:
    """The number of nodes that may be fenced for silence in a window: a part of those that lived in it, at least one.

    Nodes that left count no more.
    """
    lived = {node_id for node_id, _ in fenced}
    lived.update(node_id for node_id, node in state.membership.nodes.items() if node.lives)
    return max(1, int(state.cluster.policy.protected_ratio * len(lived)))


def _go_on(draft: Draft, silent: dict[NodeId, int], allowed: int, *, overridden: bool) -> bool:
    """Whether silent nodes may be fenced; freezes and resumes evictions."""
    frozen = draft.state.membership.evictions_frozen
    if len(silent) > allowed and not overridden:
        if not frozen:
            draft.because(CauseKind.EVICTIONS_FROZEN, ",".join(silent), f"{len(silent)} silent, {allowed} allowed")
            draft.add(EvictionsFrozen(tuple(silent), allowed))
        return False
    if frozen:
        reason = "an operator overrides self-preservation" if overridden else f"{len(silent)} silent, {allowed} allowed"
        draft.because(CauseKind.EVICTIONS_RESUMED, draft.state.log_id, reason)
        draft.add(EvictionsResumed(reason))
    return True


def _fence(draft: Draft, node_id: NodeId, silence_ms: int, now_ms: int) -> None:
    node = draft.state.membership.nodes[node_id]
    draft.because(CauseKind.NODE_EXPIRED, node_id, f"silent for {silence_ms} ms of log time")
    draft.add(NodeFenced(node_id, node.incarnation, FencingCause.SILENCE, silence_ms, now_ms))


def _take_expiries_of_former_levels(draft: Draft, silent: dict[NodeId, int], now_ms: int, *, overridden: bool) -> None:
    """The rule below feature level 3: every silent node is due at its limit, and one is allowed in every decision."""
    if not _go_on(draft, silent, _allowed_at_former_levels(draft.state, now_ms), overridden=overridden):
        return
    for node_id, silence_ms in silent.items():
        if _is_member_still(draft, node_id):
            _fence(draft, node_id, silence_ms, now_ms)


def _allowed_at_former_levels(state: State, now_ms: int) -> int:
    """Number of nodes that may expire now: a part of those that lived when the window began, and at least one."""
    policy = state.cluster.policy
    since_ms = now_ms - policy.protection_window_ms
    lately = sum(1 for node in state.membership.nodes.values() if _fenced_since(node, since_ms))
    living = sum(1 for node in state.membership.nodes.values() if node.lives)
    return max(1, int(policy.protected_ratio * (living + lately)) - lately)


def _fenced_since(node: Node, since_ms: int) -> bool:
    return node.status is NodeStatus.FENCED and node.changed_at_ms >= since_ms

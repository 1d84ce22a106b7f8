"""Fences nodes for silence, and holds this back (self-preservation) if too many nodes are silent at once."""

from typing import Final

from controlplane.core.cluster.events import FormerSilenceLimitEnded
from controlplane.core.cluster.policy import SILENCE_MARGIN_MS
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft, SealedDecision
from controlplane.core.log.state import State
from controlplane.core.membership.events import EvictionsFrozen, EvictionsResumed, FencingCause, NodeFenced
from controlplane.core.membership.node import Node, NodeStatus
from controlplane.core.values.identifiers import NodeId

_ASK_AGAIN_MS: Final = 5_000
"""How often Kafka is asked for new partitions while evictions are frozen."""


def silent_nodes(state: State, observations: Observations) -> dict[NodeId, int]:
    """Living members whose silence exceeds the limit: the silence in ms of log time, by name."""
    limit_ms = state.cluster.silence_limit_ms
    heard = observations.heard_within(limit_ms)
    silent = {}
    for node_id, node in state.membership.nodes.items():
        if (node_id, node.incarnation) in heard or not node.lives:
            continue
        silence_ms = observations.silence_ms(node_id, node.incarnation)
        since = node.admitted_at_offset, node.changed_at_ms
        silence_ms = min(silence_ms, observations.membership_ms(node_id, node.incarnation, *since))
        if silence_ms > limit_ms:
            silent[node_id] = silence_ms
    return dict(sorted(silent.items()))


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

    A node that is cut off obeys the limit of the last table that it read. It has stopped when that much log time has
    passed since the table named the new limit; the margin covers the time until the table reaches it. The time is
    counted by ticks, as silence is, so that a clock that is set forward does not shorten it.
    """
    former = draft.state.cluster.former_silence_limit
    if former is None:
        return
    passed_ms = observations.passed_ms(former.since_offset)
    if passed_ms >= former.limit_ms + SILENCE_MARGIN_MS:
        limit_ms = draft.state.cluster.policy.silence_limit_ms
        evidence = f"{passed_ms} ms of log time under {limit_ms} ms instead of {former.limit_ms} ms"
        draft.because(CauseKind.FORMER_SILENCE_LIMIT_ENDED, draft.state.log_id, evidence)
        draft.add(FormerSilenceLimitEnded(limit_ms))


def take_expiries(draft: Draft, silent: dict[NodeId, int], now_ms: int, *, overridden: bool) -> None:
    """Fence the silent nodes, or freeze evictions if they are too many (spec: Eureka's self-preservation)."""
    allowed = _allowed_expiries(draft.state, now_ms)
    if len(silent) > allowed and not overridden:
        if not draft.state.membership.evictions_frozen:
            draft.because(CauseKind.EVICTIONS_FROZEN, ",".join(silent), f"{len(silent)} silent, {allowed} allowed")
            draft.add(EvictionsFrozen(tuple(silent), allowed))
        return
    if draft.state.membership.evictions_frozen:
        reason = "an operator overrides self-preservation" if overridden else f"{len(silent)} silent, {allowed} allowed"
        draft.because(CauseKind.EVICTIONS_RESUMED, draft.state.log_id, reason)
        draft.add(EvictionsResumed(reason))
    for node_id, silence_ms in silent.items():
        node = draft.state.membership.nodes[node_id]
        if not node.lives or node.incarnation != draft.before.membership.nodes[node_id].incarnation:
            continue  # this same decision has removed it or admitted a newer process
        draft.because(CauseKind.NODE_EXPIRED, node_id, f"silent for {silence_ms} ms of log time")
        draft.add(NodeFenced(node_id, node.incarnation, FencingCause.SILENCE, silence_ms, now_ms))


def _allowed_expiries(state: State, now_ms: int) -> int:
    """Number of nodes that may expire now: a part of those that lived when the window began, and at least one."""
    policy = state.cluster.policy
    since_ms = now_ms - policy.protection_window_ms
    lately = sum(1 for node in state.membership.nodes.values() if _fenced_since(node, since_ms))
    living = sum(1 for node in state.membership.nodes.values() if node.lives)
    return max(1, int(policy.protected_ratio * (living + lately)) - lately)


def _fenced_since(node: Node, since_ms: int) -> bool:
    return node.status is NodeStatus.FENCED and node.changed_at_ms >= since_ms

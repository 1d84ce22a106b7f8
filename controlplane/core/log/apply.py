"""Apply events and decisions to a state: the only code that changes a state.

Leader, standby, replay, audit and tests all run this code, so their states cannot differ. Applying evaluates no rule
and reads no clock, because events carry their consequences. Each subject applies its own events to its image.
"""

from collections.abc import Iterable
from dataclasses import replace

from controlplane.core.bundles.apply import apply_bundle_event
from controlplane.core.bundles.events import BundleEvent
from controlplane.core.cluster.apply import apply_cluster_event
from controlplane.core.cluster.events import (
    ClusterCreated,
    ClusterEvent,
    FeatureLevelRaised,
    NodesForgotten,
    TermOpened,
)
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.events import IntentEvent
from controlplane.core.intents.image import apply_intent_event
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.apply import apply_membership_event, date_members, forget_nodes
from controlplane.core.membership.events import MembershipEvent
from controlplane.core.membership.image import MembershipImage
from controlplane.core.slots.apply import apply_slot_event, remember
from controlplane.core.slots.events import MemoryEntry, SlotEvent
from controlplane.core.slots.table import empty_table
from controlplane.core.values.identifiers import Epoch, Seq
from controlplane.errors import InvariantViolationError, LogContinuityError, UnsupportedFeatureLevelError


def apply(state: State, event: Event) -> State:
    """The state after one event.

    Raises:
        InvariantViolationError: the event cannot happen in this state.
    """
    if isinstance(event, SlotEvent):
        return replace(state, slots=apply_slot_event(state.slots, event, state.cluster.policy))
    if isinstance(event, MembershipEvent):
        return replace(state, membership=_applied_to_membership(state, event))
    if isinstance(event, BundleEvent):
        return replace(state, bundles=apply_bundle_event(state.bundles, event))
    if isinstance(event, IntentEvent):
        return replace(state, intents=apply_intent_event(state.intents, event))
    return _apply_to_cluster(state, event)


def _applied_to_membership(state: State, event: MembershipEvent) -> MembershipImage:
    seq, epoch = Seq(state.seq + 1), Epoch(state.epoch + 1)
    return apply_membership_event(state.membership, event, state.cluster, seq, epoch)


def _apply_to_cluster(state: State, event: ClusterEvent) -> State:
    """The state after an event of the cluster, which may also create a log, open a term, or clear a policy's memory."""
    before = state.cluster.policy
    if isinstance(event, ClusterCreated):
        if state.log_id:
            raise InvariantViolationError(f"the cluster exists already, its log is {state.log_id!r}")
        slots = state.slots.with_rows(empty_table(event.policy.slot_count))
        state = replace(state, log_id=event.log_id, slots=slots)
    elif isinstance(event, TermOpened):
        state = replace(state, term=event.term, leader=event.controller_id)
    state = replace(state, cluster=apply_cluster_event(state.cluster, event, state.epoch))
    if isinstance(event, FeatureLevelRaised) and state.cluster.has_several_brokers_rules:
        # Older members are dated by this decision: no member is fenced for time before that its admission is not dated.
        state = replace(state, membership=date_members(state.membership, Seq(state.seq + 1)))
    if isinstance(event, NodesForgotten):
        state = replace(state, membership=forget_nodes(state.membership, event))
    if isinstance(event, ClusterCreated) or state.cluster.policy.slot_policy == before.slot_policy:
        return state
    # A slot policy cannot interpret the memory of another one.
    forgotten = [MemoryEntry(name, None) for name in state.slots.memory]
    return replace(state, slots=remember(state.slots, forgotten))


def apply_all(state: State, events: Iterable[Event]) -> State:
    """The state after several events, in order."""
    for event in events:
        state = apply(state, event)
    return state


def stamp(state: State, decision: Decision, last_digest: str = "") -> State:
    """The state with the numbers and positions of a decision whose events it already contains.

    Args:
        state: the state with the decision's events.
        decision: the decision.
        last_digest: the decision's digest; empty while its state digest, and so its own, is not known.
    """
    return replace(
        state,
        log_id=decision.log_id,
        term=decision.term,
        seq=decision.seq,
        epoch=decision.epoch,
        decided_at_ms=decision.decided_at_ms,
        last_digest=last_digest,
        positions=dict(decision.positions),
    )


def advance(state: State, decision: Decision) -> State:
    """The state after a decision, without a check that the decision continues the log."""
    return stamp(apply_all(state, decision.events), decision, decision.digest())


def apply_decision(state: State, decision: Decision) -> State:
    """The state after the next decision of the log.

    Raises:
        UnsupportedFeatureLevelError: the decision was written by a newer version.
        LogContinuityError: the decision does not continue the log: another log id, a gap, a broken chain, a term or an
            epoch that does not follow, or a state digest that differs.
        InvariantViolationError: an event cannot happen in this state.
    """
    if decision.feature_level > FEATURE_LEVEL:
        message = (
            f"decision {decision.seq} has feature level {decision.feature_level}, this version supports "
            f"{FEATURE_LEVEL}: upgrade this process"
        )
        raise UnsupportedFeatureLevelError(message)
    for holds, sentence in (
        (decision.log_id == state.log_id or not state.log_id, f"log id {decision.log_id!r}, known is {state.log_id!r}"),
        (decision.seq == state.seq + 1, f"seq {decision.seq} after {state.seq}"),
        (decision.previous_digest == state.last_digest, "the previous decision's digest differs"),
        (_term_follows(state, decision), f"term {decision.term} after {state.term}"),
        (decision.epoch - state.epoch in (0, 1), f"epoch {decision.epoch} after {state.epoch}"),
    ):
        if not holds:
            message = (
                f"decision {decision.seq} does not continue the log: {sentence}. Was the topic recreated? If not, "
                "something other than a controller wrote to it: let nothing else write there ('controlplane acls "
                "show'), and restore the decision log from a copy made before"
            )
            raise LogContinuityError(message)
    after = advance(state, decision)
    if after.digest() != decision.state_digest:
        message = (
            f"decision {decision.seq}: state digest {after.digest()} differs from the log's {decision.state_digest}: "
            "the log was altered, or this version applies events differently from the one that wrote it; run that one"
        )
        raise LogContinuityError(message)
    return after


def _term_follows(state: State, decision: Decision) -> bool:
    opened = [event.term for event in decision.events if isinstance(event, TermOpened)]
    if opened:
        return opened == [decision.term] and decision.term > state.term
    return decision.term == state.term

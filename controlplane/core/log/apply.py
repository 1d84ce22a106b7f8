"""The only way a state changes: events into states, decisions into states.

Leader, standby, replay, audit and tests all run this code, so they cannot differ. Applying needs no rule and no clock:
events carry their consequences.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import assert_never

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.cluster.policy import FEATURE_LEVEL, Policy
from controlplane.core.log.apply_orders import apply_order
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import (
    BundlesAssigned,
    ClusterCreated,
    Event,
    EvictionsFrozen,
    EvictionsResumed,
    FeatureLevelRaised,
    IntentAnswered,
    MemoryEntry,
    NamespaceCreated,
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
    PlanDropped,
    PlanMade,
    PolicyChanged,
    PolicyRemembered,
    ReconciliationPaused,
    ReconciliationResumed,
    ReplicasLeft,
    SilenceLimitSettled,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
    TermOpened,
)
from controlplane.core.log.state import (
    ANSWERED_INTENTS_KEPT,
    State,
    departure_key,
    entry_share,
    memory_key,
    planned_key,
)
from controlplane.core.membership.node import Node, next_status
from controlplane.core.routing.rows import add_hashes
from controlplane.core.slots.plans import PlanInFlight
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Incarnation, NodeId, SlotId
from controlplane.errors import InvariantViolationError, LogContinuityError, UnsupportedFeatureLevelError


def apply(state: State, event: Event) -> State:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of event
    """The state after one event.

    Raises:
        InvariantViolationError: the event cannot happen in this state.
    """
    match event:
        case ClusterCreated():
            return _create_cluster(state, event)
        case TermOpened():
            opened = replace(state, term=event.term, leader=event.controller_id, feature_level=event.feature_level)
            return with_policy(opened, event.policy)
        case FeatureLevelRaised():
            return _raise_feature_level(state, event.feature_level)
        case NodeAdmitted():
            return _admit(state, event.node)
        case NodeDraining() | NodeUndrained() | NodeFenced() | NodeRemoved():
            return _change_status(state, event)
        case NodeOrdered() | SlotsPinned() | SlotsUnpinned() | SlotsExcluded() | SlotsIncluded():
            return apply_order(state, event)
        case ReconciliationPaused():
            return replace(state, paused=True)
        case ReconciliationResumed():
            return replace(state, paused=False)
        case PolicyChanged():
            changed = replace(state, former_silence_limit=event.former_silence_limit)
            return with_policy(changed, event.policy)
        case SilenceLimitSettled():
            return replace(state, former_silence_limit=None)
        case SlotsSplit():
            return _split_slots(state, event.slots)
        case SlotsAssigned():
            return _assign_slots(state, event.slots)
        case PlanMade() | PlanDropped() | ReplicasLeft():
            return _pace(state, event)
        case PolicyRemembered():
            return _remember(state, event.entries)
        case NamespaceCreated():
            return _create_namespace(state, event)
        case BundlesAssigned():
            return _put_bundles(state, event.bundles)
        case EvictionsFrozen():
            return replace(state, evictions_frozen=True)
        case EvictionsResumed():
            return replace(state, evictions_frozen=False)
        case IntentAnswered():
            answered = (*state.answered_intents, event.intent_id)[-ANSWERED_INTENTS_KEPT:]
            return replace(state, answered_intents=answered)
        case _:
            assert_never(event)


def with_policy(state: State, policy: Policy) -> State:
    """The state under another policy; what one slot policy has remembered means nothing to another."""
    if policy.slot_policy != state.policy.slot_policy:
        state = _remember(state, tuple(MemoryEntry(name, None) for name in state.policy_memory))
    return replace(state, policy=policy)


def apply_all(state: State, events: Iterable[Event]) -> State:
    """The state after several events, in order."""
    for event in events:
        state = apply(state, event)
    return state


def stamp(state: State, decision: Decision) -> State:
    """A state that has the decision's events, with the decision's numbers and positions."""
    return replace(
        state,
        log_id=decision.log_id,
        term=decision.term,
        seq=decision.seq,
        epoch=decision.epoch,
        decided_at_ms=decision.decided_at_ms,
        positions=dict(decision.positions),
    )


def advance(state: State, decision: Decision) -> State:
    """The state after a decision whose place in the log was checked."""
    after = stamp(apply_all(state, decision.events), decision)
    return replace(after, last_digest=decision.digest())


def follow(state: State, decision: Decision) -> State:
    """The state after the next decision of the log, which has to be the continuation of what was read.

    Raises:
        UnsupportedFeatureLevelError: a newer version wrote it.
        LogContinuityError: another log, a gap, a broken chain, a term or epoch that falls, or a digest that differs.
        InvariantViolationError: an event that cannot happen here.
    """
    if decision.feature_level > FEATURE_LEVEL:
        message = (
            f"decision {decision.seq} has feature level {decision.feature_level}, this version knows {FEATURE_LEVEL}: "
            "upgrade this process"
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
            message = f"decision {decision.seq} does not continue the log: {sentence}. Was the topic recreated?"
            raise LogContinuityError(message)
    after = advance(state, decision)
    if after.digest() != decision.state_digest:
        message = (
            f"decision {decision.seq}: state digest {after.digest()} differs from the log's {decision.state_digest}: "
            "the log was altered, or this version applies events otherwise than the one that wrote them; run that one"
        )
        raise LogContinuityError(message)
    return after


def _term_follows(state: State, decision: Decision) -> bool:
    opened = [event.term for event in decision.events if isinstance(event, TermOpened)]
    if opened:
        return opened == [decision.term] and decision.term > state.term
    return decision.term == state.term


def _raise_feature_level(state: State, feature_level: int) -> State:
    if feature_level <= state.feature_level:
        message = f"the log's feature level is {state.feature_level} already: {feature_level} does not raise it"
        raise InvariantViolationError(message)
    return replace(state, feature_level=feature_level)


def _create_cluster(state: State, event: ClusterCreated) -> State:
    if state.log_id:
        message = f"the cluster exists already, its log is {state.log_id!r}"
        raise InvariantViolationError(message)
    slots = empty_table(event.policy.slot_count)
    created = replace(state, log_id=event.log_id, policy=event.policy, slots=slots)
    digest = created.entries_digest
    for slot in slots:
        digest = add_hashes(digest, entry_share(f"slot/{slot.slot_id}", slot))
    return replace(created, entries_digest=digest)


def _admit(state: State, node: Node) -> State:
    known = state.nodes.get(node.node_id)
    if known is not None and node.incarnation < known.incarnation:
        message = f"node {node.node_id!r}: incarnation {node.incarnation} is older than {known.incarnation}"
        raise InvariantViolationError(message)
    status = next_status(known.status if known else None, "NodeAdmitted", node.node_id)
    if node.status is not status:
        message = f"node {node.node_id!r} is admitted as {node.status.value}, which is not {status.value}"
        raise InvariantViolationError(message)
    return _put_node(state, node)


def _change_status(state: State, event: NodeDraining | NodeUndrained | NodeFenced | NodeRemoved) -> State:
    node = _current(state, event.node_id, event.incarnation)
    status = next_status(node.status, type(event).__name__, node.node_id)
    leaving = isinstance(event, NodeDraining) and event.leaving
    return _put_node(state, replace(node, status=status, changed_at_ms=event.at_ms, leaving=leaving))


def _current(state: State, node_id: NodeId, incarnation: Incarnation) -> Node:
    node = state.nodes.get(node_id)
    if node is None or node.incarnation != incarnation:
        message = f"node {node_id!r}, incarnation {incarnation} is not a member (known: {node})"
        raise InvariantViolationError(message)
    return node


def _put_node(state: State, node: Node) -> State:
    key = f"node/{node.node_id}"
    known = state.nodes.get(node.node_id)
    digest = add_hashes(state.entries_digest, entry_share(key, node), entry_share(key, known) if known else 0)
    return replace(state, nodes={**state.nodes, node.node_id: node}, entries_digest=digest)


def _assign_slots(state: State, changed: tuple[Slot, ...]) -> State:
    slots = list(state.slots)
    digest = state.entries_digest
    for slot in changed:
        if not 0 <= slot.slot_id < len(slots):
            message = f"slot {slot.slot_id} is not between 0 and {len(slots) - 1}"
            raise InvariantViolationError(message)
        key = f"slot/{slot.slot_id}"
        digest = add_hashes(digest, entry_share(key, slot), entry_share(key, slots[slot.slot_id]))
        slots[slot.slot_id] = slot
    assigned = replace(state, slots=tuple(slots), entries_digest=digest)
    return _without_planned(assigned, {slot.slot_id for slot in changed}) if state.planned_rows else assigned


def _without_planned(state: State, done: AbstractSet[SlotId]) -> State:
    """The state after these rows of the plan in flight are carried out or given up; the last ends the plan."""
    planned = tuple(slot for slot in state.planned_rows if slot.slot_id not in done)
    digest = state.entries_digest
    for slot in state.planned_rows:
        if slot.slot_id in done:
            digest = add_hashes(digest, 0, entry_share(planned_key(slot.slot_id), slot))
    return replace(state, plan=state.plan if planned else None, planned_rows=planned, entries_digest=digest)


def _pace(state: State, event: PlanMade | PlanDropped | ReplicasLeft) -> State:
    match event:
        case PlanMade():
            if state.plan is not None or not event.rows:
                raise InvariantViolationError(f"plan {event.plan_id} is made while {state.plan} is there, or is empty")
            digest = state.entries_digest
            for slot in event.rows:
                digest = add_hashes(digest, entry_share(planned_key(slot.slot_id), slot))
            plan = PlanInFlight(event.plan_id, event.made_at_ms, event.not_before_ms)
            return replace(state, plan=plan, planned_rows=event.rows, entries_digest=digest)
        case PlanDropped():
            if state.plan is None or state.plan.plan_id != event.plan_id:
                raise InvariantViolationError(f"plan {event.plan_id} is dropped, in flight is {state.plan}")
            return _without_planned(state, state.planned.keys())
        case ReplicasLeft():
            return _note_departures(state, event)


def _note_departures(state: State, event: ReplicasLeft) -> State:
    since_ms = event.at_ms - state.policy.return_window_ms
    new = {(each.slot_id, each.node_id): each for each in event.departures}
    kept = {(each.slot_id, each.node_id): each for each in state.departures if each.left_at_ms > since_ms} | new
    digest = state.entries_digest
    for each in state.departures:
        if (each.slot_id, each.node_id) in new or (each.slot_id, each.node_id) not in kept:
            digest = add_hashes(digest, 0, entry_share(departure_key(each), each))
    for each in new.values():
        digest = add_hashes(digest, entry_share(departure_key(each), each))
    return replace(state, departures=tuple(kept[key] for key in sorted(kept)), entries_digest=digest)


def _remember(state: State, entries: tuple[MemoryEntry, ...]) -> State:
    memory = dict(state.policy_memory)
    digest = state.entries_digest
    for entry in entries:
        key = memory_key(entry.name)
        known = memory.pop(entry.name, None)
        removed = 0 if known is None else entry_share(key, known)
        if entry.value is not None:
            memory[entry.name] = entry.value
        digest = add_hashes(digest, 0 if entry.value is None else entry_share(key, entry.value), removed)
    return replace(state, policy_memory=memory, entries_digest=digest)


def _split_slots(state: State, parts: tuple[Slot, ...]) -> State:
    first = len(state.slots)
    if [slot.slot_id for slot in parts] != list(range(first, first + len(parts))):
        message = f"the parts of split slots do not go on at slot {first}, one by one"
        raise InvariantViolationError(message)
    digest = state.entries_digest
    for slot in parts:
        digest = add_hashes(digest, entry_share(f"slot/{slot.slot_id}", slot))
    return replace(state, slots=(*state.slots, *parts), entries_digest=digest)


def _create_namespace(state: State, event: NamespaceCreated) -> State:
    name = event.namespace.name
    if name in state.namespaces:
        message = f"namespace {name!r} exists already"
        raise InvariantViolationError(message)
    digest = add_hashes(state.entries_digest, entry_share(f"namespace/{name}", event.namespace))
    created = replace(state, namespaces={**state.namespaces, name: event.namespace}, entries_digest=digest)
    return _put_bundles(created, event.bundles)


def _put_bundles(state: State, changed: tuple[Bundle, ...]) -> State:
    bundles = dict(state.bundles)
    digest = state.entries_digest
    for bundle in changed:
        key = f"bundle/{bundle.bundle_id}"
        known = bundles.get(bundle.bundle_id)
        digest = add_hashes(digest, entry_share(key, bundle), entry_share(key, known) if known else 0)
        bundles[bundle.bundle_id] = bundle
    return replace(state, bundles=bundles, entries_digest=digest)

"""Who is to own what after members or operators' wishes changed: slots by the slot policy, bundles by the fewest."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from controlplane.core.bundles import assign_orphans
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import (
    BundlesAssigned,
    MemoryEntry,
    NamespaceCreated,
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
    PolicyChanged,
    PolicyRemembered,
    ReconciliationResumed,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsUnpinned,
)
from controlplane.core.identifiers import NodeId
from controlplane.core.membership import Node, NodeStatus
from controlplane.core.observations import Observations
from controlplane.core.orders import as_ordered
from controlplane.core.pacing import carry_out, go_on
from controlplane.core.placement.contract import PlacementNode
from controlplane.core.records import NodeRole
from controlplane.core.slot_answers import Answered, ask
from controlplane.core.slot_policies import slot_policy
from controlplane.core.slot_policy import SlotAnswer, SlotPolicies, SlotRequest, may_leave_the_dead
from controlplane.core.slot_table import Slot
from controlplane.core.state import State
from controlplane.core.survivors import rows_of_survivors

OWNERSHIP_EVENTS: Final = (
    NodeAdmitted,
    NodeDraining,
    NodeUndrained,
    NodeFenced,
    NodeRemoved,
    NodeOrdered,
    SlotsPinned,
    SlotsUnpinned,
    SlotsExcluded,
    SlotsIncluded,
    ReconciliationResumed,
    PolicyChanged,
    NamespaceCreated,
)
"""After these somebody may own too much, too little, the wrong things, or be gone."""


def is_called_for(draft: Draft) -> bool:
    """Whether what the draft has done so far calls for a plan."""
    return draft.refresh or any(isinstance(event, OWNERSHIP_EVENTS) for event in draft.events)


def plan_ownership(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> None:
    """Add the least change that gives every slot its replicas and every bundle an owner among the nodes that place."""
    plan_slots(draft, observations, policies, now_ms)
    state = draft.state
    changed = assign_orphans(tuple(state.bundles.values()), tuple(sorted(owner_ids(state))))
    if changed:
        draft.add(BundlesAssigned(changed))


def plan_slots(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> Answered:
    """Add what the slot policy answers, and why, if it changes anything or something else is decided anyway."""
    state = draft.state
    request = slot_request(draft, observations, now_ms)
    policy = slot_policy(policies, state.policy.slot_policy)
    if state.paused:
        living = {node.node_id for node in request.nodes} - request.renewed
        left = may_leave_the_dead(policy)
        _assign(draft, () if left else rows_of_survivors(request.slots, living, request.ready, request.epoch))
        return Answered(SlotAnswer(()), None)
    answer, refusal = ask(policy, request)
    rows = {slot.slot_id: slot for slot in answer.slots}
    changed = tuple(
        after
        for before, held in zip(state.slots, request.held, strict=True)
        if (after := rows.get(before.slot_id, held)) != before
    )
    draft.certificate = answer.certificate
    if changed or answer.remembered or draft.events:
        if refusal is not None:
            draft.because(CauseKind.PLACEMENT_REFUSED, state.policy.slot_policy, refusal)
        elif answer.deed or not draft.causes:
            deed = answer.deed or f"{len(changed)} slots change"
            draft.because(CauseKind.SLOTS_ARRANGED, state.policy.slot_policy, deed)
    carry_out(draft, request, changed, policy)
    if answer.remembered:
        draft.add(PolicyRemembered(tuple(MemoryEntry(*entry) for entry in sorted(answer.remembered.items()))))
    return Answered(answer, refusal)


def continue_plan(draft: Draft, observations: Observations, now_ms: int) -> None:
    """Carry out what is due of a plan that is in flight."""
    if draft.state.plan is not None and not draft.state.paused:
        go_on(draft, slot_request(draft, observations, now_ms))


def slot_request(draft: Draft, observations: Observations, now_ms: int) -> SlotRequest:
    """What the slot policy is asked after the draft's events so far."""
    state = draft.state
    owners = owner_ids(state)
    living = [node for _, node in sorted(state.nodes.items()) if node.lives and node.role is NodeRole.DATA]
    names = {node.node_id for node in living}
    return SlotRequest(
        slots=state.slots,
        nodes=tuple(_placement_node(state, node, owners) for node in living),
        renewed=_newly_admitted(draft),
        policy=state.policy,
        epoch=draft.epoch,
        now_ms=now_ms,
        reports=observations.slot_reports((node.node_id, node.incarnation) for node in living),
        memory=state.policy_memory,
        # The pin of a node that is to hold nothing sleeps, and so does every order on a node that does not live.
        pins=tuple(pin for pin in state.pins if pin.node_id in owners),
        exclusions=tuple(each for each in state.exclusions if each.node_id in names),
        refresh=draft.refresh,
    )


def owner_ids(state: State) -> frozenset[NodeId]:
    """Who is to own slots and bundles: active data nodes that are not excluded.

    If there are none, the draining ones keep what they hold rather than leave it to nobody, and if there are none of
    those either, the excluded ones do.
    """
    living = [node for node in state.nodes.values() if node.lives and node.role is NodeRole.DATA]
    wanted = [node for node in living if not state.order(node.node_id).excluded]
    active = [node for node in wanted if node.status is NodeStatus.ACTIVE]
    return frozenset(node.node_id for node in active or wanted or living)


def _assign(draft: Draft, changed: tuple[Slot, ...]) -> None:
    if changed:
        draft.add(SlotsAssigned(changed))


def _placement_node(state: State, node: Node, owners: AbstractSet[NodeId]) -> PlacementNode:
    # Whether an excluded node is an owner all the same is decided above: here only its weight and zone count.
    ordered = as_ordered(node, replace(state.order(node.node_id), excluded=False))
    weight = ordered.weight if node.node_id in owners else 0
    return PlacementNode(node.node_id, weight, node.capacity, ordered.zone)


def _newly_admitted(draft: Draft) -> frozenset[NodeId]:
    """Nodes that this decision admits: whatever a process of that name held until now, the new one holds nothing."""
    return frozenset(event.node.node_id for event in draft.events if isinstance(event, NodeAdmitted))

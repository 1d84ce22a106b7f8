"""Who is to own what after the membership changed: slots by the slot policy, bundles by the fewest."""

from controlplane.core.bundles import assign_orphans
from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import BundlesAssigned, MemoryEntry, NodeAdmitted, PolicyRemembered, SlotsAssigned
from controlplane.core.identifiers import NodeId
from controlplane.core.membership import Node
from controlplane.core.observations import Observations
from controlplane.core.placement.contract import PlacementNode
from controlplane.core.records import NodeRole
from controlplane.core.slot_answers import Answered, ask
from controlplane.core.slot_policies import slot_policy
from controlplane.core.slot_policy import SlotPolicies, SlotRequest


def plan_ownership(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> None:
    """Add the least change that gives every slot its replicas and every bundle an owner among the nodes that place."""
    plan_slots(draft, observations, policies, now_ms)
    state = draft.state
    owners = tuple(node.node_id for node in _owners(draft))
    changed = assign_orphans(tuple(state.bundles.values()), owners)
    if changed:
        draft.add(BundlesAssigned(changed))


def plan_slots(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> Answered:
    """Add what the slot policy answers, and why, if it changes anything or something else is decided anyway."""
    state = draft.state
    request = slot_request(draft, observations, now_ms)
    answer, refusal = ask(slot_policy(policies, state.policy.slot_policy), request)
    rows = {slot.slot_id: slot for slot in answer.slots}
    changed = tuple(
        after
        for before, held in zip(state.slots, request.held, strict=True)
        if (after := rows.get(before.slot_id, held)) != before
    )
    draft.certificate = answer.certificate
    if changed or draft.events:
        if refusal is not None:
            draft.because(CauseKind.PLACEMENT_REFUSED, state.policy.slot_policy, refusal)
        elif answer.deed:
            draft.because(CauseKind.SLOTS_ARRANGED, state.policy.slot_policy, answer.deed)
    if changed:
        draft.add(SlotsAssigned(changed))
    if answer.remembered:
        draft.add(PolicyRemembered(tuple(MemoryEntry(*entry) for entry in sorted(answer.remembered.items()))))
    return Answered(answer, refusal)


def slot_request(draft: Draft, observations: Observations, now_ms: int) -> SlotRequest:
    """What the slot policy is asked about the draft's state."""
    state = draft.state
    owners = {node.node_id for node in _owners(draft)}
    living = [node for _, node in sorted(state.nodes.items()) if node.lives and node.role is NodeRole.DATA]
    return SlotRequest(
        slots=state.slots,
        nodes=tuple(
            PlacementNode(node.node_id, node.weight if node.node_id in owners else 0, node.capacity, node.zone)
            for node in living
        ),
        renewed=_newly_admitted(draft),
        policy=state.policy,
        epoch=draft.epoch,
        now_ms=now_ms,
        reports=observations.slot_reports((node.node_id, node.incarnation) for node in living),
        memory=state.policy_memory,
    )


def _owners(draft: Draft) -> tuple[Node, ...]:
    """Active data nodes; if there are none, draining ones keep what they hold rather than leave it to nobody."""
    active = draft.state.placing_nodes
    if active:
        return active
    nodes = (node for _, node in sorted(draft.state.nodes.items()))
    return tuple(node for node in nodes if node.lives and node.role is NodeRole.DATA)


def _newly_admitted(draft: Draft) -> frozenset[NodeId]:
    """Nodes that this decision admits: whatever a process of that name held until now, the new one holds nothing."""
    return frozenset(event.node.node_id for event in draft.events if isinstance(event, NodeAdmitted))

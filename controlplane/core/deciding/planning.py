"""Plans ownership after members or orders changed: slots by the slot policy, bundles to the node with the fewest."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from controlplane.core.bundles.bundle import assign_orphans
from controlplane.core.bundles.events import BundlesAssigned
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.deciding.bundles.hand_off import hand_off_bundles, repair_bundles
from controlplane.core.deciding.observations import Observations
from controlplane.core.deciding.slot_witness import witness_of
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.events import (
    renewed_by,
)
from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import as_ordered
from controlplane.core.slots.answers import Answered, ask, remember_leader_epochs
from controlplane.core.slots.events import (
    MemoryEntry,
    PolicyRemembered,
    SlotsAssigned,
)
from controlplane.core.slots.handoffs import NO_WITNESS, Witness
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pacing import Carried, Holdings, carry_out, go_on
from controlplane.core.slots.policies import slot_policy
from controlplane.core.slots.policy_contract import SlotAnswer, SlotPolicies, SlotPolicy, SlotRequest
from controlplane.core.slots.reports import SlotReport
from controlplane.core.slots.survivors import rows_of_survivors
from controlplane.core.slots.table import Slot, raise_leader_epochs
from controlplane.core.values.events import calls_for_owners
from controlplane.core.values.identifiers import Epoch, NodeId, Seq


def plan_what_is_due(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> Answered | None:
    """Plan if the draft's events require it, ask the slot policy if its interval has passed, or continue a plan.

    Bundles are handed off besides.

    Returns:
        The slot policy's answer if its interval had passed; otherwise None.
    """
    answered = None
    if _is_called_for(draft):
        plan_ownership(draft, observations, policies, now_ms)
    elif (
        not draft.state.slots.paused
        and draft.state.slots.plan is None
        and _is_time_to_ask(draft, observations, policies, now_ms)
    ):
        answered = _plan_slots(draft, observations, policies, now_ms)
    else:
        _continue_plan(draft, observations, now_ms)
    hand_off_bundles(draft, observations)
    return answered


def plan_ownership(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> None:
    """Add the least change that gives every slot its replicas and every bundle an owner among the owner nodes."""
    _plan_slots(draft, observations, policies, now_ms)
    state = draft.state
    if state.cluster.feature_level >= HANDOFFS_FROM_LEVEL:
        repair_bundles(draft, observations, renewed_by(draft.events))
        return
    changed = assign_orphans(tuple(state.bundles.by_id.values()), tuple(sorted(state.membership.owner_ids)))
    if changed:
        draft.add(BundlesAssigned(changed))


def _plan_slots(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> Answered:
    """Ask the slot policy, and add its answer. The cause is added only if something changes or the draft has events."""
    state = draft.state
    request = slot_request(draft, observations, now_ms)
    policy = slot_policy(policies, state.cluster.policy.slot_policy)
    paused = state.slots.paused
    answer, refusal = Answered(_answer_in_pause(policy, request), None) if paused else ask(policy, request)
    planned = request.table_after(answer)
    rows = raise_leader_epochs(planned, request.renewed, request.epoch)
    changed = tuple(new for old, new in zip(request.slots, rows, strict=True) if new != old)
    # The policy left these rows as they were, so its answer cannot say what to remember of them.
    pairs = zip(request.slots, planned, rows, strict=True)
    left = [old for old, own, new in pairs if own is not new and old == own != new]
    memory = remember_leader_epochs(policy, left, request.memory)
    if memory.refusal is not None:
        draft.because(CauseKind.PLACEMENT_REFUSED, policy.name, memory.refusal)
    if paused and changed:
        draft.add(SlotsAssigned(changed))
    elif not paused:
        _carry_out(draft, observations, request, policy, Answered(answer, refusal), changed)
    remembered = {**memory.changes, **answer.remembered}
    if remembered:
        draft.add(PolicyRemembered(tuple(MemoryEntry(*entry) for entry in sorted(remembered.items()))))
    return Answered(answer, refusal)


def _answer_in_pause(policy: SlotPolicy, request: SlotRequest) -> SlotAnswer:
    """The answer while reconciliation is paused: the dead are taken out, or stay where the policy may leave them."""
    if policy.dead_may_hold:
        return SlotAnswer(request.as_published())
    return SlotAnswer(rows_of_survivors(request.slots, request.survivors, request.ready, request.epoch, spread=True))


def _carry_out(
    draft: Draft,
    observations: Observations,
    request: SlotRequest,
    policy: SlotPolicy,
    answered: Answered,
    changed: tuple[Slot, ...],
) -> None:
    """Add the certificate, the cause and the events of an answer that changes these rows."""
    answer, refusal = answered
    draft.certificate = answer.certificate
    if changed or answer.remembered or draft.events:
        if refusal is not None:
            draft.because(CauseKind.PLACEMENT_REFUSED, policy.name, refusal)
        elif answer.evidence or not draft.causes:
            evidence = answer.evidence or f"{len(changed)} {'slot changes' if len(changed) == 1 else 'slots change'}"
            draft.because(CauseKind.SLOTS_ARRANGED, policy.name, evidence)
    holdings = holdings_of(draft.state, witness_of(draft.state, observations, request))
    _add(draft, policy.name, carry_out(holdings, request, changed, policy, Seq(draft.before.seq + 1)))


def _continue_plan(draft: Draft, observations: Observations, now_ms: int) -> None:
    """Carry out the due part of a plan in flight."""
    plan = draft.state.slots.plan
    if plan is None or draft.state.slots.paused:  # the usual case; building a request is expensive
        return
    request = slot_request(draft, observations, now_ms)
    holdings = holdings_of(draft.state, witness_of(draft.state, observations, request))
    carried = go_on(holdings, request, plan)
    if carried.rows:
        done = f"{carried.rows} slots of the plan of decision {plan.plan_id}, {carried.left} left"
        draft.because(CauseKind.PLAN_CONTINUED, str(plan.plan_id), done)
    _add(draft, str(plan.plan_id), carried)


def _add(draft: Draft, subject: str, carried: Carried) -> None:
    """Add what is carried out of a plan, with the cause of its handoffs."""
    steps = [f"{carried.handoffs} handoffs of slots go on"] if carried.handoffs else []
    if steps or carried.remarks:
        draft.because(CauseKind.SLOTS_HANDED_OFF, subject, "; ".join([*steps, *carried.remarks]))
    for event in carried.events:
        draft.add(event)


def holdings_of(state: State, witness: Witness = NO_WITNESS) -> Holdings:
    """The part of a state that pacing needs, with what is known of the nodes that hand slots off."""
    incarnations = {node_id: node.incarnation for node_id, node in state.membership.nodes.items()}
    return Holdings(state.slots, state.epoch, incarnations, witness)


def slot_request(draft: Draft, observations: Observations, now_ms: int) -> SlotRequest:
    """The request to the slot policy after the draft's events so far."""
    state = draft.state
    owners = state.membership.owner_ids
    living = state.membership.data_nodes
    names = {node.node_id for node in living}
    return SlotRequest(
        slots=state.slots.table,
        nodes=tuple(_placement_node(state, node, owners) for node in living),
        renewed=renewed_by(draft.events),
        policy=state.cluster.policy,
        epoch=draft.epoch,
        now_ms=now_ms,
        reports=_reports(state, observations, living),
        memory=state.slots.memory,
        # A pin to a node that is to hold nothing is suspended. So is every order on a node that does not live.
        pins=tuple(pin for pin in state.slots.pins if pin.node_id in owners),
        exclusions=tuple(each for each in state.slots.exclusions if each.node_id in names),
        refresh=draft.refresh,
    )


def _reports(state: State, observations: Observations, living: tuple[Node, ...]) -> dict[NodeId, SlotReport]:
    """The last reports of the living nodes; without statuses those that were made before the sender was admitted.

    The last heartbeat of a process that was fenced and is admitted again says that it has copies. It has given them up,
    and may get the same slots again. A table of epoch 0 says nothing of its age: its sender reads none.
    """
    reports = observations.slot_reports(
        ((node.node_id, node.incarnation) for node in living),
        state.slots.table,
        by_ticks=state.cluster.has_several_brokers_rules,
    )
    admitted_in = state.membership.admitted_in
    return {
        node_id: report
        if not 0 < report.table_epoch < admitted_in.get(node_id, Epoch(0))
        else report._replace(statuses=())
        for node_id, report in reports.items()
    }


def _is_called_for(draft: Draft) -> bool:
    """Whether the draft's changes so far require a plan."""
    return draft.refresh or any(calls_for_owners(event) for event in draft.events)


def _is_time_to_ask(draft: Draft, observations: Observations, policies: SlotPolicies, now_ms: int) -> bool:
    """Whether the slot policy is to be asked although members and orders are unchanged.

    It is also asked with every other decision, because frequent decisions would otherwise postpone its interval for
    ever.
    """
    before = draft.before
    policy = policies.get(draft.state.cluster.policy.slot_policy)
    if policy is None or policy.interval_ms is None:
        return False
    if draft.events:
        return True
    asked = observations.policy_asked
    return now_ms - before.decided_at_ms >= policy.interval_ms and (asked is None or asked.seq != before.seq)


def _placement_node(state: State, node: Node, owners: AbstractSet[NodeId]) -> PlacementNode:
    # `owners` already decides whether an excluded node holds slots. Only its weight and zone count here.
    ordered = as_ordered(node, replace(state.membership.order(node.node_id), excluded=False))
    weight = ordered.weight if node.node_id in owners else 0
    return PlacementNode(node.node_id, weight, node.capacity, ordered.zone)

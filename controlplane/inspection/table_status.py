"""The status of the slot table: balance, stability, holds, and its policy's report (SOFARegistry's table status)."""

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.core.deciding.log_clock import log_time_of_question_ms
from controlplane.core.deciding.observations import Observations
from controlplane.core.deciding.planning import holdings_of, slot_request
from controlplane.core.deciding.slot_witness import witness_of
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.slots.answers import Answered, ask
from controlplane.core.slots.pacing import Waiting, waiting_rows
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import (
    OrderKind,
    SlotAnswer,
    SlotBalance,
    SlotPolicies,
    SlotPolicy,
    SlotRequest,
)
from controlplane.core.slots.survivors import stranded_texts
from controlplane.core.slots.sync import is_stable
from controlplane.core.slots.table import NodeSlots, by_node
from controlplane.core.values.identifiers import Epoch, NodeId, Seq


@dataclass(frozen=True, slots=True)
class TableStatus:
    """The status of the slot table.

    Attributes:
        epoch: of the table.
        slot_policy: the name of the slot policy.
        balance: by the policy's own bounds; None if the policy is not known here.
        stable: whether all slot leaders report that they have their data, and all followers that they were in sync
            recently.
        protected: whether the slot policy leaves the table unchanged because too few nodes live.
        evictions_frozen: whether self-preservation applies: no node is fenced for silence.
        says: what the slot policy would do or report if it were asked now; may be empty.
        refusal: why the slot policy cannot make a table; empty if it can.
        plan: the decision whose plan is being carried out; None if there is none.
        plan_age_ms: how much log time ago that was; None if there is no plan.
        waiting: the rows of the plan that are left, with the reason for which each waits.
        bundles_in_flight: bundles for which a node has to act before they have an owner again, or are split.
        bundle_orders: orders of bundles that stand, begun or not.
        shortfalls: a sentence for each requirement that cannot be met now, and for slots that no other node may hold.
        replicas_missing: replicas that the policy requires and no living node holds.
        slots_without_a_node: slots that no living node holds.
        paused: whether reconciliation is paused: no slot is planned.
        nodes: the slots of each living data node and of each node that the table names, by node id.
        standings: the status of each of these nodes, and whether it is excluded, as a text.
    """

    epoch: Epoch
    slot_policy: str
    balance: SlotBalance | None
    stable: bool
    protected: bool
    evictions_frozen: bool
    says: str
    refusal: str
    plan: Seq | None
    plan_age_ms: int | None
    waiting: tuple[Waiting, ...]
    bundles_in_flight: int
    bundle_orders: int
    shortfalls: tuple[str, ...]
    replicas_missing: int
    slots_without_a_node: int
    paused: bool
    nodes: Mapping[NodeId, NodeSlots]
    standings: Mapping[NodeId, str]


def table_status(state: State, observations: Observations, policies: SlotPolicies = BUILT_IN_POLICIES) -> TableStatus:
    """The status of a state's table, by the last reports of its nodes."""
    name = state.cluster.policy.slot_policy
    now_ms = log_time_of_question_ms(state, observations)
    request = slot_request(Draft(state), observations, now_ms)
    policy = policies.get(name)
    answer, refusal = ask(policy, request) if policy is not None else Answered(SlotAnswer(()), None)
    held = by_node(state.slots.table)
    names = sorted({*held, *request.living})
    living = [len(request.living.intersection(slot.replicas)) for slot in state.slots.table]
    return TableStatus(
        epoch=state.epoch,
        slot_policy=name,
        balance=policy.balance(request, answer) if policy is not None else None,
        stable=_is_stable(policy, request),
        protected=answer.protects,
        evictions_frozen=state.membership.evictions_frozen,
        says=answer.evidence,
        refusal=refusal or "",
        plan=state.slots.plan.plan_id if state.slots.plan else None,
        plan_age_ms=now_ms - state.slots.plan.made_at_ms if state.slots.plan else None,
        waiting=waiting_rows(holdings_of(state, witness_of(state, observations, request)), request),
        bundles_in_flight=len(state.bundles.in_flight),
        bundle_orders=len(state.bundles.orders),
        shortfalls=_shortfalls(policy, request, answer),
        replicas_missing=sum(max(0, state.cluster.policy.replica_count - count) for count in living),
        slots_without_a_node=living.count(0),
        paused=state.slots.paused,
        nodes={node_id: held.get(node_id, NodeSlots(node_id, (), ())) for node_id in names},
        standings={node_id: _standing(state, node_id) for node_id in names},
    )


def rows_that_wait(state: State, observations: Observations) -> tuple[Waiting, ...]:
    """The rows left of the plan in flight, by slot id, with the reason for which each waits (by last reports)."""
    now_ms = log_time_of_question_ms(state, observations)
    request = slot_request(Draft(state), observations, now_ms)
    return waiting_rows(holdings_of(state, witness_of(state, observations, request)), request)


def _standing(state: State, node_id: NodeId) -> str:
    node = state.membership.nodes.get(node_id)
    status = node.status.value if node is not None else "unknown"
    return f"{status}, excluded" if state.membership.order(node_id).excluded else status


def _is_stable(policy: SlotPolicy | None, request: SlotRequest) -> bool:
    if not request.slots or any(slot.leader is None for slot in request.slots):
        return False
    return is_stable(request.slots, request.reports) if policy is None else policy.is_in_sync(request)


def _shortfalls(policy: SlotPolicy | None, request: SlotRequest, answer: SlotAnswer) -> tuple[str, ...]:
    """The shortfalls of the certificate, or for a policy without one the slots that no other node may hold."""
    if answer.certificate is not None:
        return answer.certificate.shortfalls
    if policy is not None and OrderKind.SLOT_EXCLUSIONS not in policy.supported_orders:
        return ()
    return tuple(stranded_texts(request.stranded, request.living))

"""How the slot table stands: balanced, in sync, frozen, and what its policy says (SOFARegistry's table status)."""

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.core.draft import Draft
from controlplane.core.identifiers import Epoch, NodeId, Seq
from controlplane.core.observations import Observations
from controlplane.core.pacing import Waiting, waiting_rows
from controlplane.core.planning import slot_request
from controlplane.core.records import NodeRole
from controlplane.core.slot_answers import Answered, ask
from controlplane.core.slot_policies import BUILT_IN_POLICIES
from controlplane.core.slot_policies.sofa import POLICY_NAME as SOFA
from controlplane.core.slot_policies.sofa import sofa_options
from controlplane.core.slot_policies.sofa_memory import arranged_at
from controlplane.core.slot_policy import JudgesBalance, SlotAnswer, SlotBalance, SlotPolicies, SlotRequest
from controlplane.core.slot_table import NodeSlots, by_node
from controlplane.core.sofa.arranger import TickAction
from controlplane.core.sofa.monitor import is_stable
from controlplane.core.state import State


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How the table stands.

    Attributes:
        epoch: of the table.
        slot_policy: who decides.
        balance: by the policy's own bounds; None if the policy is not known here.
        stable: whether all slot leaders say that they have their data, and all followers that they were in sync lately.
        protected: the slot policy leaves the table as it is because there are so few nodes.
        evictions_frozen: self-preservation holds: nobody is fenced for silence.
        says: what the slot policy would do or say if it were asked now; empty if it says nothing.
        refusal: why the slot policy cannot make a table; empty if it can.
        plan: the decision whose plan is being carried out; None if there is none.
        waiting: the rows that are left of it, with what each waits for.
        paused: reconciliation is paused: no slot is planned.
        nodes: what each living data node, and everybody whom the table names, leads and follows, by name.
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
    waiting: tuple[Waiting, ...]
    paused: bool
    nodes: Mapping[NodeId, NodeSlots]


def table_status(state: State, observations: Observations, policies: SlotPolicies = BUILT_IN_POLICIES) -> TableStatus:
    """The status of a state's table, by what nodes said last."""
    name = state.policy.slot_policy
    now_ms = max(observations.now_ms or 0, state.decided_at_ms)
    request = slot_request(Draft(state), observations, now_ms)
    policy = policies.get(name)
    answer, refusal = ask(policy, request) if policy is not None else Answered(SlotAnswer(()), None)
    balance = None
    if policy is not None:
        balance = policy.balance(request) if isinstance(policy, JudgesBalance) else _unmoved(request, answer)
    held = by_node(state.slots)
    living = {node.node_id for node in state.nodes.values() if node.lives and node.role is NodeRole.DATA}
    return TableStatus(
        epoch=state.epoch,
        slot_policy=name,
        balance=balance,
        stable=_is_stable(state, request),
        protected=answer.deed.startswith(f"{TickAction.PROTECT.value}:"),
        evictions_frozen=state.evictions_frozen,
        says=answer.deed,
        refusal=refusal or "",
        plan=state.plan.plan_id if state.plan else None,
        waiting=waiting_rows(state, request),
        paused=state.paused,
        nodes={node_id: held.get(node_id, NodeSlots(node_id, (), ())) for node_id in sorted({*held, *living})},
    )


def _is_stable(state: State, request: SlotRequest) -> bool:
    gap_ms, since = sofa_options({}).max_sync_gap_ms, Epoch(0)
    if state.policy.slot_policy == SOFA:
        gap_ms = sofa_options(state.policy.slot_policy_options).max_sync_gap_ms
        since = arranged_at(state.policy_memory, state.epoch)
    led = bool(state.slots) and all(slot.leader is not None for slot in state.slots)
    return led and is_stable(state.slots, request.reports, since, gap_ms)


def _unmoved(request: SlotRequest, answer: SlotAnswer) -> SlotBalance:
    """A policy that makes one plan calls balanced what it would leave where it is."""
    pairs = [(request.slots[slot.slot_id], slot) for slot in answer.slots]
    return SlotBalance(
        leaders=all(old.leader == new.leader for old, new in pairs),
        followers=all({*old.replicas} == {*new.replicas} for old, new in pairs),
    )

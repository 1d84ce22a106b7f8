"""Carries a plan out at the pace that operators have chosen: which rows may go now, and what the others wait for.

The certificate proves the whole plan; pacing only spreads it over decisions, each of which names the plan and what is
left of it. Emergencies never wait: a slot that lost a holder, or lacks one, gets its planned row at once. What only
balances waits for the cool-down, for a free place among the moves in flight, until its slot is in order, and until a
replica that balancing took away lately may come back. A new plan takes the place of what is left of an old one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

from controlplane.core.decision import CauseKind
from controlplane.core.draft import Draft
from controlplane.core.events import PlanDropped, PlanMade, ReplicasLeft, SlotsAssigned
from controlplane.core.identifiers import NodeId, Seq, SlotId
from controlplane.core.plans import Departure
from controlplane.core.records import ReplicaStatus
from controlplane.core.slot_policy import SlotPolicy, SlotRequest
from controlplane.core.slot_table import Slot
from controlplane.core.state import State


@runtime_checkable
class PacesItself(Protocol):
    """A slot policy that has a pace of its own: its answers are carried out at once."""

    @property
    def paces_itself(self) -> bool:
        """Whether it does."""
        ...


class Waiting(NamedTuple):
    """A planned row that has to wait, and what for."""

    slot_id: SlotId
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """What of a plan may be carried out now, and why the rest may not."""

    rows: tuple[Slot, ...]
    waiting: tuple[Waiting, ...]


def carry_out(draft: Draft, request: SlotRequest, planned: tuple[Slot, ...], policy: SlotPolicy) -> None:
    """Add what of a new plan may be carried out now, and keep the rest."""
    state = draft.state
    at_once = request.refresh or (isinstance(policy, PacesItself) and policy.paces_itself)
    not_before_ms = request.now_ms + state.policy.cool_down_ms
    step = Step(planned, ()) if at_once else next_step(state, request, planned, not_before_ms)
    if state.plan is not None:
        draft.add(PlanDropped(state.plan.plan_id, "a new plan takes its place"))
    _assign(draft, request, step.rows)
    if step.waiting:
        later = {waiting.slot_id for waiting in step.waiting}
        rows = tuple(slot for slot in planned if slot.slot_id in later)
        plan_id = Seq(draft.before.seq + 1)
        draft.add(PlanMade(plan_id, request.now_ms, not_before_ms, rows))


def go_on(draft: Draft, request: SlotRequest) -> None:
    """Add what of the plan in flight may be carried out now, if anything may."""
    state = draft.state
    if state.plan is None:
        return
    rows = state.planned_rows
    step = next_step(state, request, rows, state.plan.not_before_ms)
    if step.rows:
        draft.because(
            CauseKind.PLAN_CONTINUED,
            str(state.plan.plan_id),
            f"{len(step.rows)} slots of the plan of decision {state.plan.plan_id}, {len(step.waiting)} left",
        )
        _assign(draft, request, tuple(_due(request, slot) for slot in step.rows))


def waiting_rows(state: State, request: SlotRequest) -> tuple[Waiting, ...]:
    """What is left of the plan in flight, by slot id, with what each row waits for."""
    if state.plan is None:
        return ()
    rows = state.planned_rows
    step = next_step(state, request, rows, state.plan.not_before_ms)
    due = [Waiting(slot.slot_id, "the leader's next look") for slot in step.rows]
    return tuple(sorted([*step.waiting, *due]))


def next_step(state: State, request: SlotRequest, planned: Sequence[Slot], not_before_ms: int) -> Step:
    """Which of the planned rows may be carried out now; the others with their reason, by slot id."""
    policy = state.policy
    living = {node.node_id for node in request.nodes} - request.renewed
    urgent = [slot for slot in planned if _is_urgent(request.slots[slot.slot_id], slot, living)]
    chosen = {slot.slot_id: slot for slot in urgent}
    budget = policy.moves_in_flight
    unready = _unready(state, request) if budget else {}
    in_flight = sum(len(names) for names in unready.values())
    in_flight += sum(len(_new_holders(request.slots[slot.slot_id], slot)) for slot in urgent)
    left = {(each.slot_id, each.node_id): each for each in state.departures}
    waiting = []
    for slot in planned:
        if slot.slot_id in chosen:
            continue
        now = request.slots[slot.slot_id]
        new = _new_holders(now, slot)
        returning = _returning(state, request, slot.slot_id, new, left)
        if request.now_ms < not_before_ms:
            reason = f"the cool-down of {policy.cool_down_ms} ms"
        elif returning:
            reason = f"{', '.join(returning)}: gave it up within the last {policy.return_window_ms} ms"
        elif slot.slot_id in unready:
            reason = f"{', '.join(unready[slot.slot_id])}: not ready in it yet"
        elif budget and in_flight and in_flight + len(new) > budget:
            reason = f"{in_flight} moves in flight, {budget} allowed"
        else:
            chosen[slot.slot_id] = slot
            in_flight += len(new)
            continue
        waiting.append(Waiting(slot.slot_id, reason))
    return Step(tuple(slot for _, slot in sorted(chosen.items())), tuple(waiting))


def _is_urgent(now: Slot, planned: Slot, living: set[NodeId]) -> bool:
    """Whether a slot has lost a holder or its leader, or lacks replicas."""
    alive = living.intersection(now.replicas)
    return len(alive) < len(now.replicas) or now.leader is None or len(alive) < len(planned.replicas)


def _new_holders(now: Slot, planned: Slot) -> set[NodeId]:
    return set(planned.replicas) - set(now.replicas)


def _unready(state: State, request: SlotRequest) -> dict[SlotId, list[NodeId]]:
    """For each slot the holders that are not known to have its data.

    A node that says nothing of any slot is believed to be in order once it works with the newest table, or if it never
    says which table it works with.
    """
    unready: dict[SlotId, list[NodeId]] = {}
    healthy: dict[NodeId, frozenset[SlotId] | None] = {}
    for node in request.nodes:
        report = request.reports.get(node.node_id)
        if report is None:
            healthy[node.node_id] = frozenset()
        elif report.statuses:
            ready = (status for status in report.statuses if status.status is ReplicaStatus.HEALTHY)
            healthy[node.node_id] = frozenset(status.slot_id for status in ready)
        else:
            healthy[node.node_id] = frozenset() if 0 < report.table_epoch < state.epoch else None
    for slot in request.slots:
        for node_id in slot.replicas:
            known = healthy.get(node_id)
            if known is not None and slot.slot_id not in known:
                unready.setdefault(slot.slot_id, []).append(node_id)
    return unready


def _returning(
    state: State,
    request: SlotRequest,
    slot_id: SlotId,
    new: Iterable[NodeId],
    left: Mapping[tuple[SlotId, NodeId], Departure],
) -> list[NodeId]:
    """Who of these gave the slot up too short a time ago; a process that came after that is another one."""
    return [
        node_id
        for node_id in sorted(new)
        if (departure := left.get((slot_id, node_id))) is not None
        and request.now_ms < departure.left_at_ms + state.policy.return_window_ms
        and state.nodes[node_id].incarnation == departure.incarnation
    ]


def _assign(draft: Draft, request: SlotRequest, rows: Sequence[Slot]) -> None:
    """Assign rows, and note who gave a slot up though it lives."""
    if not rows:
        return
    departures = tuple(_departures(draft.state, request, rows)) if draft.state.policy.return_window_ms else ()
    draft.add(SlotsAssigned(tuple(rows)))
    if departures:
        draft.add(ReplicasLeft(request.now_ms, departures))


def _due(request: SlotRequest, planned: Slot) -> Slot:
    """A row of an earlier plan with the leader epoch that it has when it is assigned now."""
    now = request.slots[planned.slot_id]
    kept = planned.leader == now.leader and planned.leader not in request.renewed
    return replace(planned, leader_epoch=now.leader_epoch if kept else request.epoch)


def _departures(state: State, request: SlotRequest, rows: Sequence[Slot]) -> Iterator[Departure]:
    placing = {node.node_id for node in request.nodes if node.weight} - request.renewed
    for slot in rows:
        for node_id in request.slots[slot.slot_id].replicas:
            if node_id in placing and node_id not in slot.replicas:
                yield Departure(slot.slot_id, node_id, state.nodes[node_id].incarnation, request.now_ms)

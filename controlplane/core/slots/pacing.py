"""Carries a plan out at the pace that operators have chosen: which rows may go now, and what the others wait for.

The certificate proves the whole plan; pacing only spreads it over decisions, each of which names the plan and what is
left of it. Emergencies never wait: a slot that lost a holder, or lacks one, gets its planned row at once. What carries
out an operator's order waits for a free place among the moves in flight, with its slot in order, and for nothing else.
What only balances also waits for the cool-down, and until a replica that balancing took away lately may come back.
A new plan takes the place of what is left of an old one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from controlplane.core.slots.events import PlanDropped, PlanMade, ReplicasLeft, SlotEvent, SlotsAssigned
from controlplane.core.slots.image import SlotsImage
from controlplane.core.slots.plans import Departure, PlanInFlight
from controlplane.core.slots.policy_contract import SlotPolicy, SlotRequest
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, Seq, SlotId
from controlplane.core.values.replica_status import ReplicaStatus


class Waiting(NamedTuple):
    """A planned row that has to wait, and what for."""

    slot_id: SlotId
    reason: str


@dataclass(frozen=True, slots=True)
class DuePlan:
    """What of a plan may be carried out now, and why the rest may not."""

    rows: tuple[Slot, ...]
    waiting: tuple[Waiting, ...]


class Holdings(NamedTuple):
    """What pacing has to know beside the request to the slot policy, as of the same state.

    Attributes:
        slots: the table, the plan in flight, and what nodes have given up lately.
        epoch: of the table that nodes can work with by now.
        incarnations: of every member, by name.
    """

    slots: SlotsImage
    epoch: Epoch
    incarnations: Mapping[NodeId, Incarnation]


def carry_out(
    holdings: Holdings, request: SlotRequest, planned: tuple[Slot, ...], policy: SlotPolicy, plan_id: Seq
) -> tuple[SlotEvent, ...]:
    """What of a new plan is carried out now, and what is kept of it for later, as events.

    Args:
        holdings: see :class:`Holdings`.
        request: what the slot policy was asked.
        planned: the rows that are to change.
        policy: which has planned them.
        plan_id: the seq of the decision that plans.
    """
    at_once = request.refresh or policy.paces_itself
    not_before_ms = request.now_ms + request.policy.cool_down_ms
    due = DuePlan(planned, ()) if at_once else due_plan(holdings, request, planned, not_before_ms)
    events: list[SlotEvent] = []
    if holdings.slots.plan is not None:
        events.append(PlanDropped(holdings.slots.plan.plan_id, "a new plan takes its place"))
    events += _assigned(holdings, request, due.rows)
    if due.waiting:
        later = {waiting.slot_id for waiting in due.waiting}
        rows = tuple(slot for slot in planned if slot.slot_id in later)
        events.append(PlanMade(plan_id, request.now_ms, not_before_ms, rows))
    return tuple(events)


def go_on(holdings: Holdings, request: SlotRequest, plan: PlanInFlight) -> tuple[DuePlan, tuple[SlotEvent, ...]]:
    """What of the plan in flight may be carried out now, and the events that do it; none if nothing may."""
    due = due_plan(holdings, request, holdings.slots.planned_rows, plan.not_before_ms)
    return due, tuple(_assigned(holdings, request, [_due(request, slot) for slot in due.rows]))


def waiting_rows(holdings: Holdings, request: SlotRequest) -> tuple[Waiting, ...]:
    """What is left of the plan in flight, by slot id, with what each row waits for."""
    if holdings.slots.plan is None:
        return ()
    rows = holdings.slots.planned_rows
    due = due_plan(holdings, request, rows, holdings.slots.plan.not_before_ms)
    next_rows = [Waiting(slot.slot_id, "the leader's next look") for slot in due.rows]
    return tuple(sorted([*due.waiting, *next_rows]))


def due_plan(holdings: Holdings, request: SlotRequest, planned: Sequence[Slot], not_before_ms: int) -> DuePlan:
    """Which of the planned rows may be carried out now; the others with their reason, by slot id.

    Rows that carry out orders pass the cool-down and the return window, which delay balancing, and get what there is
    of the budget first.
    """
    policy = request.policy
    living = request.survivors
    urgent = [slot for slot in planned if _is_urgent(request.slots[slot.slot_id], slot, living)]
    chosen = {slot.slot_id: slot for slot in urgent}
    budget = policy.moves_in_flight
    ordered = _ordered_slots(request, planned)
    unready = _unready(holdings.epoch, request) if budget else {}
    for slot in planned:
        if slot.slot_id in ordered and slot.slot_id in unready:
            # A node need not get ready in a slot that it is to give up.
            unready[slot.slot_id] = [name for name in unready[slot.slot_id] if name in slot.replicas]
    unready = {slot_id: names for slot_id, names in unready.items() if names}
    in_flight = sum(len(names) for names in unready.values())
    in_flight += sum(len(_new_holders(request.slots[slot.slot_id], slot)) for slot in urgent)
    left = {(each.slot_id, each.node_id): each for each in holdings.slots.departures}
    waiting, delayed = [], []
    for slot in sorted(planned, key=lambda slot: slot.slot_id not in ordered):
        if slot.slot_id in chosen:
            continue
        new = _new_holders(request.slots[slot.slot_id], slot)
        balances = slot.slot_id not in ordered
        returning = _returning(holdings, request, slot.slot_id, new, left) if balances else []
        if balances and request.now_ms < not_before_ms:
            reason = f"cool_down_ms is {policy.cool_down_ms:,}, {_seconds(not_before_ms - request.now_ms)} left"
        elif returning:
            reason = _return_reason(request, [left[slot.slot_id, node_id] for node_id in returning])
        elif slot.slot_id in unready:
            verb = "is" if len(unready[slot.slot_id]) == 1 else "are"
            reason = f"{', '.join(unready[slot.slot_id])} {verb} not ready in it yet, moves_in_flight is {budget:,}"
        elif budget and in_flight and in_flight + len(new) > budget:
            reason = f"{in_flight} replicas are on the move, moves_in_flight is {budget:,}"
        else:
            chosen[slot.slot_id] = slot
            in_flight += len(new)
            continue
        waiting.append(Waiting(slot.slot_id, reason))
        if returning or (balances and request.now_ms < not_before_ms):
            delayed.append(slot)
    for slot, node_id in _without_room(request, [row for row in chosen.values() if row.slot_id in ordered], delayed):
        del chosen[slot.slot_id]
        waiting.append(Waiting(slot.slot_id, f"{node_id} has no room before rows are carried out that wait"))
    return DuePlan(tuple(slot for _, slot in sorted(chosen.items())), tuple(sorted(waiting)))


def _without_room(
    request: SlotRequest, ordered: Sequence[Slot], delayed: Sequence[Slot]
) -> Iterator[tuple[Slot, NodeId]]:
    """Rows that pass delayed ones and would fill a node above its capacity, which the delayed ones keep to."""
    relieved = {name for slot in delayed for name in set(request.slots[slot.slot_id].replicas) - set(slot.replicas)}
    room = {node.node_id: node.capacity for node in request.nodes if node.capacity and node.node_id in relieved}
    if not room:
        return
    for slot in request.slots:
        for name in room.keys() & set(slot.replicas):
            room[name] -= 1
    for slot in ordered:
        for name in _new_holders(request.slots[slot.slot_id], slot):
            if name in room and room[name] <= 0:
                yield slot, name
                break
            if name in room:
                room[name] -= 1


def _ordered_slots(request: SlotRequest, planned: Sequence[Slot]) -> frozenset[SlotId]:
    """The slots whose planned rows do what an operator ordered: a pin is kept, or a node is relieved of a slot."""
    pinned = {(pin.slot_id, pin.node_id) for pin in request.pins}
    pinned_leaders = {(pin.slot_id, pin.node_id) for pin in request.pins if pin.leads}
    barred = {(each.slot_id, each.node_id) for each in request.exclusions}
    owners = frozenset(request.owner_ids)
    found = set()
    for slot in planned:
        slot_id, now = slot.slot_id, request.slots[slot.slot_id]
        leaving = set(now.replicas) - set(slot.replicas)
        if (
            any((slot_id, name) in pinned for name in _new_holders(now, slot))
            or (slot.leader != now.leader and (slot_id, slot.leader) in pinned_leaders)
            or any(name not in owners or (slot_id, name) in barred for name in leaving)
        ):
            found.add(slot_id)
    return frozenset(found)


def _is_urgent(now: Slot, planned: Slot, living: frozenset[NodeId]) -> bool:
    """Whether a slot has lost a holder or its leader, or lacks replicas."""
    alive = living.intersection(now.replicas)
    return len(alive) < len(now.replicas) or now.leader is None or len(alive) < len(planned.replicas)


def _new_holders(now: Slot, planned: Slot) -> set[NodeId]:
    return set(planned.replicas) - set(now.replicas)


def _unready(epoch: Epoch, request: SlotRequest) -> dict[SlotId, list[NodeId]]:
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
            healthy[node.node_id] = frozenset() if 0 < report.table_epoch < epoch else None
    for slot in request.slots:
        for node_id in slot.replicas:
            known = healthy.get(node_id)
            if known is not None and slot.slot_id not in known:
                unready.setdefault(slot.slot_id, []).append(node_id)
    return unready


def _returning(
    holdings: Holdings,
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
        and request.now_ms < departure.left_at_ms + request.policy.return_window_ms
        and holdings.incarnations[node_id] == departure.incarnation
    ]


def _return_reason(request: SlotRequest, departures: Sequence[Departure]) -> str:
    """Who gave the slot up, how long ago in log time, and how long the last of them has still to stay away."""
    window_ms = request.policy.return_window_ms
    gone = [f"{each.node_id} gave it up {_seconds(request.now_ms - each.left_at_ms)} ago" for each in departures]
    rest_ms = max(each.left_at_ms for each in departures) + window_ms - request.now_ms
    return f"{' and '.join(gone)}, return_window_ms is {window_ms:,}, {_seconds(rest_ms)} left"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms // 1_000} s"


def _assigned(holdings: Holdings, request: SlotRequest, rows: Sequence[Slot]) -> Iterator[SlotEvent]:
    """The assignment of rows, and who gives a slot up though it lives."""
    if not rows:
        return
    yield SlotsAssigned(tuple(rows))
    departures = tuple(_departures(holdings, request, rows)) if request.policy.return_window_ms else ()
    if departures:
        yield ReplicasLeft(request.now_ms, departures)


def _due(request: SlotRequest, planned: Slot) -> Slot:
    """A row of an earlier plan with the leader epoch that it has when it is assigned now."""
    now = request.slots[planned.slot_id]
    kept = planned.leader == now.leader and planned.leader not in request.renewed
    return replace(planned, leader_epoch=now.leader_epoch if kept else request.epoch)


def _departures(holdings: Holdings, request: SlotRequest, rows: Sequence[Slot]) -> Iterator[Departure]:
    # A node that is to hold nothing, or holds nothing yet, gives nothing up; and balancing takes no order back.
    placing = request.survivors.intersection(request.owner_ids)
    barred = {(each.slot_id, each.node_id) for each in request.exclusions}
    for slot in rows:
        for node_id in request.slots[slot.slot_id].replicas:
            if node_id in placing and node_id not in slot.replicas and (slot.slot_id, node_id) not in barred:
                yield Departure(slot.slot_id, node_id, holdings.incarnations[node_id], request.now_ms)

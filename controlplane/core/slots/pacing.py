"""Carries out plans at the pace of the policy: which rows may be assigned now, and what the others wait for.

The certificate proves the whole plan. Pacing only spreads the plan over several decisions, each of which names the plan
and what is left of it. Rows wait according to their purpose:

- An emergency never waits: a slot that lost a holder, or lacks one, gets its planned row at once, also where its nodes
  have no room until other rows are carried out. If its leadership moves by handoff, it gets the followers of its
  planned row at once.
- A row that carries out an operator's order waits until its slot is ready, the moves in flight leave a place, and its
  nodes have room.
- A row that only balances also waits for the cool-down, and until a replica that balancing removed may come back.

A new plan replaces what is left of an old one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from controlplane.core.slots.events import (
    PlanDropped,
    PlanMade,
    ReplicasLeft,
    SlotEvent,
    SlotHandoffsChanged,
    SlotHandoffsEnded,
    SlotsAssigned,
)
from controlplane.core.slots.handoffs import NO_WITNESS, Advance, Moment, SlotHandoff, Witness, advance, kept
from controlplane.core.slots.image import SlotsImage
from controlplane.core.slots.plans import Departure, PlanInFlight
from controlplane.core.slots.policy_contract import SlotPolicy, SlotRequest
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, Seq, SlotId
from controlplane.core.values.replica_status import ReplicaStatus


class Waiting(NamedTuple):
    """A planned row that has to wait, and the reason."""

    slot_id: SlotId
    reason: str


@dataclass(frozen=True, slots=True)
class DuePlan:
    """The rows of a plan that may be carried out now, and those that wait."""

    rows: tuple[Slot, ...]
    waiting: tuple[Waiting, ...]


class Holdings(NamedTuple):
    """The inputs of pacing beside the request to the slot policy, from the same state.

    Attributes:
        slots: the table, the plan in flight, and recent departures.
        epoch: the epoch of the table that nodes may already use.
        incarnations: the incarnation of every member, by name.
        witness: what is known of the nodes that hand slots off.
    """

    slots: SlotsImage
    epoch: Epoch
    incarnations: Mapping[NodeId, Incarnation]
    witness: Witness = NO_WITNESS


class Carried(NamedTuple):
    """What a decision carries out of a plan.

    Attributes:
        events: the events, in order.
        rows: number of rows that are carried out.
        left: number of rows that wait.
        handoffs: number of handoffs that begin, or go on to the release.
        remarks: sentences on slots that their leaders have not said to have released, or that move without their data.
    """

    events: tuple[SlotEvent, ...]
    rows: int
    left: int
    handoffs: int
    remarks: tuple[str, ...]


def carry_out(
    holdings: Holdings, request: SlotRequest, planned: tuple[Slot, ...], policy: SlotPolicy, plan_id: Seq
) -> Carried:
    """Carry out the due part of a new plan, and keep the rest for later.

    Handoffs that the plan has no use for end: their leaders serve on.

    Args:
        holdings: see :class:`Holdings`.
        request: the request to the slot policy.
        planned: the rows that are to change.
        policy: the policy that planned them.
        plan_id: the seq of the decision that plans.
    """
    at_once = request.refresh or policy.paces_itself
    not_before_ms = request.now_ms + request.policy.cool_down_ms
    under_way = holdings.slots.handoffs
    going_on = {}
    if not policy.paces_itself:
        going_on = kept(under_way, planned, request.slots, holdings.witness)
    due = DuePlan(planned, ()) if at_once else due_plan(holdings, request, planned, not_before_ms, going_on)
    step = Advance(due.rows, (), {}, ()) if policy.paces_itself else _advance(holdings, request, due.rows, going_on)
    events: list[SlotEvent] = []
    if holdings.slots.plan is not None:
        events.append(PlanDropped(holdings.slots.plan.plan_id, "a new plan takes its place"))
    assigned = {slot.slot_id for slot in step.rows}
    ended = tuple(slot_id for slot_id in under_way if slot_id not in going_on and slot_id not in assigned)
    if ended:
        events.append(SlotHandoffsEnded(ended))
    meanwhile = tuple(_meanwhile(request, (slot for slot in planned if slot.slot_id in step.waiting)))
    again = [going_on[slot.slot_id] for slot in meanwhile if slot.slot_id in going_on]
    events += _assigned(holdings, request, sorted([*step.rows, *meanwhile], key=lambda slot: slot.slot_id))
    later = {*(waiting.slot_id for waiting in due.waiting), *step.waiting}
    if later:
        rows = tuple(slot for slot in planned if slot.slot_id in later)
        events.append(PlanMade(plan_id, request.now_ms, not_before_ms, rows))
    handoffs = {each.slot_id: each for each in (*again, *step.changed)}
    if handoffs:
        events.append(SlotHandoffsChanged(tuple(each for _, each in sorted(handoffs.items()))))
    return Carried(tuple(events), len(step.rows), len(later), len(step.changed), step.remarks)


def go_on(holdings: Holdings, request: SlotRequest, plan: PlanInFlight) -> Carried:
    """Carry out the due part of the plan in flight; no events if nothing is due."""
    under_way = holdings.slots.handoffs
    due = due_plan(holdings, request, holdings.slots.planned_rows, plan.not_before_ms, under_way)
    step = _advance(holdings, request, due.rows, under_way)
    events = list(_assigned(holdings, request, [_due(request, slot) for slot in step.rows]))
    if step.changed:
        events.append(SlotHandoffsChanged(step.changed))
    left = len(due.waiting) + len(step.waiting)
    return Carried(tuple(events), len(step.rows), left, len(step.changed), step.remarks)


def _advance(
    holdings: Holdings, request: SlotRequest, due: Sequence[Slot], under_way: Mapping[SlotId, SlotHandoff]
) -> Advance:
    moment = Moment(holdings.epoch, request.epoch, request.now_ms, request.policy.copy_limit_ms)
    return advance(due, request.slots, under_way, holdings.witness, moment)


def waiting_rows(holdings: Holdings, request: SlotRequest) -> tuple[Waiting, ...]:
    """The remaining rows of the plan in flight, by slot id, with what each waits for."""
    if holdings.slots.plan is None:
        return ()
    rows = holdings.slots.planned_rows
    under_way = holdings.slots.handoffs
    due = due_plan(holdings, request, rows, holdings.slots.plan.not_before_ms, under_way)
    step = _advance(holdings, request, due.rows, under_way)
    next_rows = [Waiting(slot.slot_id, "the leader's next decision") for slot in step.rows]
    handed_off = [Waiting(*each) for each in step.waiting.items()]
    return tuple(sorted([*due.waiting, *handed_off, *next_rows]))


def due_plan(
    holdings: Holdings,
    request: SlotRequest,
    planned: Sequence[Slot],
    not_before_ms: int,
    under_way: Mapping[SlotId, SlotHandoff],
) -> DuePlan:
    """The planned rows that may be carried out now, and the others with the reason, by slot id.

    A row whose handoff is ``under_way`` is due: it goes on to the next step. The cool-down and the return window delay
    only balancing. Rows that carry out orders ignore both, and use the budget of moves first.
    """
    policy = request.policy
    living = request.survivors
    emergencies = {slot.slot_id: slot for slot in planned if _is_emergency(request.slots[slot.slot_id], slot, living)}
    chosen = {**emergencies, **{slot.slot_id: slot for slot in planned if slot.slot_id in under_way}}
    budget = policy.moves_in_flight
    ordered = _ordered_slots(request, planned)
    unready = _unready(holdings.epoch, request) if budget else {}
    for slot in planned:
        if slot.slot_id in ordered and slot.slot_id in unready:
            # A node need not become ready in a slot that it is to give up.
            unready[slot.slot_id] = [name for name in unready[slot.slot_id] if name in slot.replicas]
    unready = {slot_id: names for slot_id, names in unready.items() if names}
    in_flight = sum(len(names) for names in unready.values())
    in_flight += sum(len(_new_holders(request.slots[slot_id], slot)) for slot_id, slot in chosen.items())
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
            reason = f"{in_flight} replicas are moving, moves_in_flight is {budget:,}"
        else:
            chosen[slot.slot_id] = slot
            in_flight += len(new)
            continue
        waiting.append(Waiting(slot.slot_id, reason))
        if returning or (balances and request.now_ms < not_before_ms):
            delayed.append(slot)
    obeying = [row for slot_id, row in chosen.items() if slot_id in ordered and slot_id not in emergencies]
    for slot, node_id in _without_room(request, emergencies.values(), obeying, delayed):
        del chosen[slot.slot_id]
        waiting.append(Waiting(slot.slot_id, f"{node_id} has no room until waiting rows are carried out"))
    return DuePlan(tuple(slot for _, slot in sorted(chosen.items())), tuple(sorted(waiting)))


def _meanwhile(request: SlotRequest, handed_off: Iterable[Slot]) -> Iterator[Slot]:
    """The rows of slots that have lost replicas, or lack some, until their planned rows follow a handoff.

    Emergencies wait for no handoff: the dead leave a row at once, and followers that the planned row names take their
    places, as many as that has replicas. The next leader is no such follower, because its handoff shows it as one.
    """
    for planned in handed_off:
        now = request.slots[planned.slot_id]
        if not _is_emergency(now, planned, request.survivors):
            continue
        left = [name for name in now.followers if name in request.survivors]
        places = max(len(planned.followers) - len(left), 0)
        new = [name for name in planned.followers if name != now.leader and name not in left]
        row = replace(now, followers=tuple(sorted([*left, *new[:places]])))
        if row != now:
            yield row


def _without_room(
    request: SlotRequest, emergencies: Iterable[Slot], ordered: Sequence[Slot], delayed: Sequence[Slot]
) -> Iterator[tuple[Slot, NodeId]]:
    """Ordered rows that would fill a node above its capacity while delayed rows still have to leave it.

    Emergencies take their room first, and are never held back.
    """
    relieved = {name for slot in delayed for name in set(request.slots[slot.slot_id].replicas) - set(slot.replicas)}
    room = {node.node_id: node.capacity for node in request.nodes if node.capacity and node.node_id in relieved}
    if not room:
        return
    for slot in request.slots:
        for name in room.keys() & set(slot.replicas):
            room[name] -= 1
    for slot in emergencies:
        for name in room.keys() & _new_holders(request.slots[slot.slot_id], slot):
            room[name] -= 1
    for slot in ordered:
        for name in _new_holders(request.slots[slot.slot_id], slot):
            if name in room and room[name] <= 0:
                yield slot, name
                break
            if name in room:
                room[name] -= 1


def _ordered_slots(request: SlotRequest, planned: Sequence[Slot]) -> frozenset[SlotId]:
    """The slots whose planned rows carry out an order: a pin is kept, or a node is relieved of a slot."""
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


def _is_emergency(now: Slot, planned: Slot, living: frozenset[NodeId]) -> bool:
    """Whether a slot has lost a holder or its leader, or lacks replicas."""
    alive = living.intersection(now.replicas)
    return len(alive) < len(now.replicas) or now.leader is None or len(alive) < len(planned.replicas)


def _new_holders(now: Slot, planned: Slot) -> set[NodeId]:
    return set(planned.replicas) - set(now.replicas)


def _unready(epoch: Epoch, request: SlotRequest) -> dict[SlotId, list[NodeId]]:
    """For each slot, the holders that are not known to have its data.

    A node that reports no slot counts as healthy once it uses the newest table, or if it never reports its table.
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
    """The nodes that gave the slot up within the return window. A later process of the same name does not count."""
    return [
        node_id
        for node_id in sorted(new)
        if (departure := left.get((slot_id, node_id))) is not None
        and request.now_ms < departure.left_at_ms + request.policy.return_window_ms
        and holdings.incarnations[node_id] == departure.incarnation
    ]


def _return_reason(request: SlotRequest, departures: Sequence[Departure]) -> str:
    """The nodes that gave the slot up, how long ago, and how long the last of them has to wait, in log time."""
    window_ms = request.policy.return_window_ms
    gone = [f"{each.node_id} gave it up {_seconds(request.now_ms - each.left_at_ms)} ago" for each in departures]
    rest_ms = max(each.left_at_ms for each in departures) + window_ms - request.now_ms
    return f"{' and '.join(gone)}, return_window_ms is {window_ms:,}, {_seconds(rest_ms)} left"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms // 1_000} s"


def _assigned(holdings: Holdings, request: SlotRequest, rows: Sequence[Slot]) -> Iterator[SlotEvent]:
    """The events that assign rows and record the departures of living nodes."""
    if not rows:
        return
    yield SlotsAssigned(tuple(rows))
    departures = tuple(_departures(holdings, request, rows)) if request.policy.return_window_ms else ()
    if departures:
        yield ReplicasLeft(request.now_ms, departures)


def _due(request: SlotRequest, planned: Slot) -> Slot:
    """A row of an earlier plan with the leader epoch for an assignment now."""
    now = request.slots[planned.slot_id]
    kept = planned.leader == now.leader and planned.leader not in request.renewed
    return replace(planned, leader_epoch=now.leader_epoch if kept else request.epoch)


def _departures(holdings: Holdings, request: SlotRequest, rows: Sequence[Slot]) -> Iterator[Departure]:
    # A node that is to hold nothing, or holds nothing yet, has no departures. A removal by an order is none either.
    placing = request.survivors.intersection(request.owner_ids)
    barred = {(each.slot_id, each.node_id) for each in request.exclusions}
    for slot in rows:
        for node_id in request.slots[slot.slot_id].replicas:
            if node_id in placing and node_id not in slot.replicas and (slot.slot_id, node_id) not in barred:
                yield Departure(slot.slot_id, node_id, holdings.incarnations[node_id], request.now_ms)

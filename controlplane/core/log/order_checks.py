"""Finds standing orders that contradict each other, before an operation adds another one."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.pins import Pin
from controlplane.core.values.identifiers import SlotId


class OrderProblem(NamedTuple):
    """A contradiction between orders.

    Attributes:
        slot_id: the slot concerned.
        kind: the kind of contradiction.
        subject: the node or zone concerned; empty if the whole slot is.
        excess: by how many a limit is exceeded. Two problems that differ only in ``excess`` are the same contradiction.
        sentence: the explanation for operators.
    """

    slot_id: SlotId
    kind: str
    subject: str
    excess: int
    sentence: str


def new_problems(before: State, after: State) -> list[str]:
    """The contradictions in ``after`` that ``before`` does not have, or has with a smaller excess, as sentences."""
    known = {problem[:3]: problem.excess for problem in order_problems(before)}
    return [problem.sentence for problem in order_problems(after) if problem.excess > known.get(problem[:3], 0)]


def order_problems(state: State) -> Iterator[OrderProblem]:
    """Each contradiction between pins, exclusions of slots and the policy.

    An exclusion of a whole node contradicts no pin: pins to an excluded, draining or dead node have no effect.
    """
    excluded_pairs = {(each.slot_id, each.node_id) for each in state.slots.exclusions}
    by_slot: dict[SlotId, list[Pin]] = defaultdict(list)
    for pin in state.slots.pins:
        by_slot[pin.slot_id].append(pin)
        # Either order may be the later one, so the sentence only says that they exclude each other.
        where = f"slot {pin.slot_id} cannot be pinned to {pin.node_id!r}"
        if (pin.slot_id, pin.node_id) in excluded_pairs:
            sentence = f"{where} and excluded from it at once"
            yield OrderProblem(pin.slot_id, "pinned and excluded", pin.node_id, 1, sentence)
        node = state.membership.nodes.get(pin.node_id)
        if node is not None and node.role is not NodeRole.DATA:
            sentence = f"{where}: that node is no data node"
            yield OrderProblem(pin.slot_id, "no data node", pin.node_id, 1, sentence)
    for slot_id, pins in by_slot.items():
        yield from _slot_problems(state, slot_id, pins)


def _slot_problems(state: State, slot_id: SlotId, pins: list[Pin]) -> Iterator[OrderProblem]:
    policy = state.cluster.policy
    excess = len(pins) - policy.replica_count
    if excess > 0:
        sentence = f"slot {slot_id} cannot have {len(pins)} pins: replica_count is {policy.replica_count}"
        yield OrderProblem(slot_id, "too many pins", "", excess, sentence)
    leaders = [pin.node_id for pin in pins if pin.leads]
    if len(leaders) > 1:
        sentence = f"slot {slot_id} cannot be led by {' and '.join(leaders)} at once"
        yield OrderProblem(slot_id, "too many leaders", "", len(leaders) - 1, sentence)
    if policy.zone_rule is not ZoneRule.HARD:
        return
    zones: dict[str, int] = defaultdict(int)
    for pin in pins:
        node = state.membership.nodes.get(pin.node_id)
        zone = state.membership.as_ordered(node).zone if node is not None else ""
        if zone:
            zones[zone] += 1
    room = policy.replicas_per_zone
    for zone, count in zones.items():
        if count > room:
            sentence = f"slot {slot_id} cannot have {count} pins in zone {zone!r}, which may hold {room}"
            yield OrderProblem(slot_id, "too many pins in a zone", zone, count - room, sentence)

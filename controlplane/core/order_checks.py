"""What operators' standing orders must not say together; found before an order is taken up, whatever the order is."""

from collections import defaultdict
from collections.abc import Iterator

from controlplane.core.identifiers import SlotId
from controlplane.core.orders import Pin
from controlplane.core.policy import ZoneRule
from controlplane.core.records import NodeRole
from controlplane.core.state import State


def order_problems(state: State) -> Iterator[str]:
    """Each contradiction between pins, exclusions, orders on nodes and the policy, in a sentence."""
    excluded_pairs = {(each.slot_id, each.node_id) for each in state.exclusions}
    by_slot: dict[SlotId, list[Pin]] = defaultdict(list)
    for pin in state.pins:
        by_slot[pin.slot_id].append(pin)
        where = f"slot {pin.slot_id} is pinned to {pin.node_id!r}"
        if (pin.slot_id, pin.node_id) in excluded_pairs:
            yield f"{where}, which must not hold it"
        if state.order(pin.node_id).excluded:
            yield f"{where}, which is excluded"
        node = state.nodes.get(pin.node_id)
        if node is not None and node.role is not NodeRole.DATA:
            yield f"{where}, which is no data node"
    for slot_id, pins in by_slot.items():
        yield from _slot_problems(state, slot_id, pins)


def _slot_problems(state: State, slot_id: SlotId, pins: list[Pin]) -> Iterator[str]:
    policy = state.policy
    if len(pins) > policy.replica_count:
        yield f"slot {slot_id} has {len(pins)} pins and {policy.replica_count} replicas"
    leaders = [pin.node_id for pin in pins if pin.leads]
    if len(leaders) > 1:
        yield f"slot {slot_id} cannot be led by {' and '.join(leaders)} at once"
    if policy.zone_rule is not ZoneRule.HARD:
        return
    zones: dict[str, int] = defaultdict(int)
    for pin in pins:
        node = state.nodes.get(pin.node_id)
        zone = state.as_ordered(node).zone if node is not None else ""
        if zone:
            zones[zone] += 1
    for zone, count in zones.items():
        if count > policy.replicas_per_zone:
            yield f"slot {slot_id} has {count} pins in zone {zone!r}, which may hold {policy.replicas_per_zone}"

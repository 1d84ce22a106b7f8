"""The nodes that may hold slots under the standing orders, derived from a state without the planner's code.

:attr:`controlplane.core.membership.image.MembershipImage.owner_ids` is the planner's answer. This module computes it
again in another way, so that a planner that leaves a node out is detected.
"""

from collections.abc import Iterator, Sequence

from controlplane.core.log.state import State
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId


def holders(state: State) -> Iterator[PlacementNode]:
    """The living data nodes, with the weights and zones that operators set, if any.

    Draining nodes are given nothing unless there are no others. Excluded nodes are given nothing unless there are not
    even draining ones, so that no slot is left empty.
    """
    data = [node for node in state.membership.nodes.values() if node.role is NodeRole.DATA]
    groups: dict[tuple[bool, bool], list[Node]] = {}
    for node in data:
        if node.status in (NodeStatus.ACTIVE, NodeStatus.DRAINING):
            excluded = state.membership.order(node.node_id).excluded
            # Excluded nodes form one group, whether they drain or not.
            groups.setdefault((excluded, not excluded and node.status is NodeStatus.DRAINING), []).append(node)
    for place, group in enumerate(groups[key] for key in sorted(groups)):
        for node in group:
            order = state.membership.order(node.node_id)
            weight = node.weight if order.weight is None else order.weight
            zone = node.zone if order.zone is None else order.zone
            yield PlacementNode(node.node_id, 0 if place else weight, node.capacity, zone)


def expected_owners(state: State) -> list[NodeId]:
    """The names of the nodes that are to hold something, sorted."""
    return sorted(node.node_id for node in holders(state) if node.weight > 0)


def active_pins(state: State) -> tuple[Pin, ...]:
    """The pins to nodes that are to hold something."""
    names = frozenset(expected_owners(state))
    return tuple(pin for pin in state.slots.pins if pin.node_id in names)


def active_exclusions(state: State) -> tuple[Exclusion, ...]:
    """The exclusions of living nodes."""
    return tuple(
        each
        for each in state.slots.exclusions
        if each.node_id in state.membership.nodes and state.membership.nodes[each.node_id].lives
    )


def immovable(state: State, table: Sequence[Slot]) -> frozenset[SlotId]:
    """The slots that a plan has to leave in place: a living node holds each, and no other node may be given it.

    Args:
        state: the state after the orders.
        table: what living nodes hold. A node that lost its data in a restart is not in it.
    """
    owners = set(expected_owners(state))
    takers = {slot.slot_id: owners for slot in table}
    for each in active_exclusions(state):
        if each.slot_id in takers:
            takers[each.slot_id] = takers[each.slot_id] - {each.node_id}
    living = {node.node_id for node in holders(state)}
    return frozenset(slot.slot_id for slot in table if not takers[slot.slot_id] and living & set(slot.replicas))

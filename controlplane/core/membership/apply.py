"""Applying events to the image of the membership."""

from dataclasses import replace
from typing import assert_never

from controlplane.core.membership.events import (
    EvictionsFrozen,
    EvictionsResumed,
    MembershipEvent,
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
)
from controlplane.core.membership.image import MembershipImage
from controlplane.core.membership.node import Node, next_status
from controlplane.core.membership.standing_orders import NO_ORDER
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.errors import InvariantViolationError


def apply_membership_event(membership: MembershipImage, event: MembershipEvent) -> MembershipImage:
    """The image after one event.

    Raises:
        InvariantViolationError: the node's status has no transition for the event, or the incarnation is not current.
    """
    match event:
        case NodeAdmitted(node=node):
            return _admit(membership, node)
        case NodeDraining() | NodeUndrained() | NodeFenced() | NodeRemoved():
            return _change_status(membership, event)
        case NodeOrdered():
            return _order(membership, event)
        case EvictionsFrozen():
            return replace(membership, evictions_frozen=True)
        case EvictionsResumed():
            return replace(membership, evictions_frozen=False)
        case _:
            assert_never(event)


def _admit(membership: MembershipImage, node: Node) -> MembershipImage:
    known = membership.nodes.get(node.node_id)
    if known is not None and node.incarnation < known.incarnation:
        message = f"node {node.node_id!r}: incarnation {node.incarnation} is older than {known.incarnation}"
        raise InvariantViolationError(message)
    status = next_status(known.status if known else None, "NodeAdmitted", node.node_id)
    if node.status is not status:
        message = f"node {node.node_id!r} is admitted as {node.status.value}, which is not {status.value}"
        raise InvariantViolationError(message)
    return _with_node(membership, node)


def _change_status(
    membership: MembershipImage, event: NodeDraining | NodeUndrained | NodeFenced | NodeRemoved
) -> MembershipImage:
    node = _current(membership, event.node_id, event.incarnation)
    status = next_status(node.status, type(event).__name__, node.node_id)
    leaving = isinstance(event, NodeDraining) and event.leaving
    return _with_node(membership, replace(node, status=status, changed_at_ms=event.at_ms, leaving=leaving))


def _current(membership: MembershipImage, node_id: NodeId, incarnation: Incarnation) -> Node:
    node = membership.nodes.get(node_id)
    if node is None or node.incarnation != incarnation:
        message = f"node {node_id!r}, incarnation {incarnation} is not a member (known: {node})"
        raise InvariantViolationError(message)
    return node


def _with_node(membership: MembershipImage, node: Node) -> MembershipImage:
    return replace(membership, nodes=membership.nodes.put([(node.node_id, node)]))


def _order(membership: MembershipImage, event: NodeOrdered) -> MembershipImage:
    if event.order != NO_ORDER:
        return replace(membership, orders=membership.orders.put([(event.node_id, event.order)]))
    taken_back = [event.node_id] if event.node_id in membership.orders else []
    return replace(membership, orders=membership.orders.drop(taken_back))

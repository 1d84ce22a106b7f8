"""Applying events to the image of the membership."""

from dataclasses import replace
from typing import assert_never

from controlplane.core.cluster.events import NodesForgotten
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.membership.events import (
    EvictionsFrozen,
    EvictionsResumed,
    FencingCause,
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
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, Seq
from controlplane.errors import InvariantViolationError


def apply_membership_event(
    membership: MembershipImage, event: MembershipEvent, cluster: ClusterImage, seq: Seq, epoch: Epoch
) -> MembershipImage:
    """The image after one event.

    Args:
        membership: the image before it.
        event: the event.
        cluster: the feature level and the policy.
        seq: seq of the event's decision.
        epoch: the epoch of the event's decision, if it changes a row, as each admission does.

    Raises:
        InvariantViolationError: the node's status has no transition for the event, or the incarnation is not current.
    """
    match event:
        case NodeAdmitted(node=node):
            admitted = _dated(_admit(membership, node, cluster.incarnation_floor), node.node_id, cluster, seq)
            if not cluster.has_several_brokers_rules:
                return admitted
            return replace(admitted, admitted_in=admitted.admitted_in.put([(node.node_id, epoch)]))
        case NodeFenced(cause=FencingCause.SILENCE) if cluster.has_several_brokers_rules:
            fenced = _change_status(membership, event)
            return _with_fencing(fenced, event, cluster.policy.protection_window_ms)
        case NodeRemoved():
            return _dated(_change_status(membership, event), event.node_id, cluster, seq)
        case NodeDraining() | NodeUndrained() | NodeFenced():
            return _change_status(membership, event)
        case NodeOrdered():
            return _order(membership, event)
        case EvictionsFrozen():
            return replace(membership, evictions_frozen=True)
        case EvictionsResumed():
            return replace(membership, evictions_frozen=False)
        case _:
            assert_never(event)


def date_members(membership: MembershipImage, seq: Seq) -> MembershipImage:
    """The image in which every node is dated by this decision, because none was dated before it."""
    return replace(membership, dated_by=membership.dated_by.put([(node_id, seq) for node_id in membership.nodes]))


def forget_nodes(membership: MembershipImage, event: NodesForgotten) -> MembershipImage:
    """The image without nodes that are forgotten.

    Raises:
        InvariantViolationError: a node is not known, lives, has a standing order, or an incarnation above the floor.
    """
    for node_id in event.node_ids:
        node = membership.nodes.get(node_id)
        if node is None or node.lives or node_id in membership.orders or node.incarnation > event.incarnation_floor:
            message = f"node {node_id!r} cannot be forgotten with floor {event.incarnation_floor}: {node}"
            raise InvariantViolationError(message)
    dated = [node_id for node_id in event.node_ids if node_id in membership.dated_by]
    admitted = [node_id for node_id in event.node_ids if node_id in membership.admitted_in]
    return replace(
        membership,
        nodes=membership.nodes.drop(event.node_ids),
        dated_by=membership.dated_by.drop(dated),
        admitted_in=membership.admitted_in.drop(admitted),
    )


def _dated(membership: MembershipImage, node_id: NodeId, cluster: ClusterImage, seq: Seq) -> MembershipImage:
    if not cluster.has_several_brokers_rules:
        return membership
    return replace(membership, dated_by=membership.dated_by.put([(node_id, seq)]))


def _admit(membership: MembershipImage, node: Node, floor: Incarnation) -> MembershipImage:
    known = membership.nodes.get(node.node_id)
    if known is None and node.incarnation <= floor:
        message = (
            f"node {node.node_id!r}: incarnation {node.incarnation} is not above the floor {floor} of unknown nodes"
        )
        raise InvariantViolationError(message)
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


def _with_fencing(membership: MembershipImage, event: NodeFenced, window_ms: int) -> MembershipImage:
    """The image in which this fencing counts, and those before the window no more."""
    before = membership.fenced_lately
    passed = [member for member, at_ms in before.items() if at_ms < event.at_ms - window_ms]
    fenced_lately = before.drop(passed).put([((event.node_id, event.incarnation), event.at_ms)])
    return replace(membership, fenced_lately=fenced_lately)


def _order(membership: MembershipImage, event: NodeOrdered) -> MembershipImage:
    if event.order != NO_ORDER:
        return replace(membership, orders=membership.orders.put([(event.node_id, event.order)]))
    taken_back = [event.node_id] if event.node_id in membership.orders else []
    return replace(membership, orders=membership.orders.drop(taken_back))

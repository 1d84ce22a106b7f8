"""The rows of the nodes in the routing table."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, assert_never, get_args

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
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.values.addresses import Address
from controlplane.core.values.canonical import union_member
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.core.values.row_kind import RowKind


@union_member
@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as readers of the table see it. Nodes that left have no row; fenced nodes keep theirs, to learn of it."""

    node_id: NodeId
    incarnation: Incarnation
    role: NodeRole
    status: NodeStatus
    addresses: tuple[Address, ...]
    zone: str
    weight: int
    version: str


def node_row(membership: MembershipImage, node_id: NodeId) -> NodeRow | None:
    """The row of a node; None without one."""
    known = membership.nodes.get(node_id)
    if known is None or known.status is NodeStatus.LEFT:
        return None
    node = membership.as_ordered(known)
    return NodeRow(
        node.node_id,
        node.incarnation,
        node.role,
        node.status,
        node.addresses,
        node.zone,
        node.weight,
        node.version,
    )


def touched_nodes(event: MembershipEvent) -> Iterable[NodeId]:
    """The nodes whose rows an event may change."""
    match event:
        case NodeAdmitted(node=node):
            return [node.node_id]
        case NodeDraining() | NodeUndrained() | NodeFenced() | NodeRemoved() | NodeOrdered():
            return [event.node_id]
        case EvictionsFrozen() | EvictionsResumed():
            return []
        case _:
            assert_never(event)


NODE_ROWS: Final = RowKind(
    name="node",
    record=NodeRow,
    image=MembershipImage,
    ids=lambda image: image.nodes,
    row=node_row,
    events=get_args(MembershipEvent),
    touched=touched_nodes,
    id_of=lambda row: row.node_id,
    id_in_key=str,
)
"""The rows of nodes, for example ``main/node/n1``."""

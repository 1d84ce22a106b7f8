"""The rows of the nodes in the routing table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, assert_never, get_args

from controlplane.core.cluster.events import NodesForgotten
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
from controlplane.core.membership.node import PROCESSES_FROM_LEVEL, NodeRole, NodeStatus, are_two_processes
from controlplane.core.values.addresses import Address
from controlplane.core.values.canonical import later, union_member
from controlplane.core.values.identifiers import Incarnation, NodeId, ProcessId
from controlplane.core.values.row_kind import RowKind


@union_member
@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as readers of the table see it. Nodes that left have no row; fenced nodes keep theirs, to learn of it.

    Nodes that were forgotten have none.
    """

    node_id: NodeId
    incarnation: Incarnation
    role: NodeRole
    status: NodeStatus
    addresses: tuple[Address, ...]
    zone: str
    weight: int
    version: str
    process_id: ProcessId = field(default="", metadata=later(since_level=PROCESSES_FROM_LEVEL))

    def is_of(self, incarnation: Incarnation, process_id: ProcessId) -> bool:
        """Whether this is the row of this process of the node."""
        return self.incarnation == incarnation and not are_two_processes(self.process_id, process_id)


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
        node.process_id,
    )


def touched_nodes(event: MembershipEvent | NodesForgotten) -> Iterable[NodeId]:
    """The nodes whose rows an event may change."""
    match event:
        case NodeAdmitted(node=node):
            return [node.node_id]
        case NodeDraining() | NodeUndrained() | NodeFenced() | NodeRemoved() | NodeOrdered():
            return [event.node_id]
        case NodesForgotten(node_ids=node_ids):
            return node_ids
        case EvictionsFrozen() | EvictionsResumed():
            return []
        case _:
            assert_never(event)


NODE_ROWS: Final = RowKind(
    name="node",
    record=NodeRow,
    levels=(1, PROCESSES_FROM_LEVEL),
    image=MembershipImage,
    ids=lambda image: image.nodes,
    row=node_row,
    events=(*get_args(MembershipEvent), NodesForgotten),
    touched=touched_nodes,
    id_of=lambda row: row.node_id,
    id_in_key=str,
)
"""The rows of nodes, for example ``main/node/n1``."""

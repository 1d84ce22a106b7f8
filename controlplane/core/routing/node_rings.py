"""The rings of the nodes in a routing table, for callers who route by ring without slots."""

from typing import TypeAlias

from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import node_key
from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.ring.member_rings import MemberRings
from controlplane.core.values.identifiers import NodeId

RingMembers: TypeAlias = tuple[tuple[NodeId, bool], ...]
"""The nodes on the rings, by name, and whether each stays."""


def ring_members(table: RoutingTable) -> RingMembers:
    """The living data nodes. An active one stays; a draining one is on its way out, unless there is no other node.

    Raises:
        UnroutableError: a newer version wrote the row of a node, so the rings cannot be known.
    """
    for name in table.unreadable:
        if name.startswith(node_key("")):
            table.require_readable(name)
    living = [row for row in table.nodes.values() if row.role is NodeRole.DATA and row.status.lives]
    staying = {row.node_id for row in living if row.status is NodeStatus.ACTIVE} or {row.node_id for row in living}
    return tuple(sorted((row.node_id, row.node_id in staying) for row in living))


def rings_of(members: RingMembers) -> MemberRings:
    """The primary ring of all these nodes, and the minority ring of those that stay.

    Nodes join in order of name. All readers of a table then have the same rings, and the minority ring is the primary
    one of the table in which the others have left.
    """
    return MemberRings(
        HashRing(node_id for node_id, _ in members), HashRing(node_id for node_id, stays in members if stays)
    )

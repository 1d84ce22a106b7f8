"""The image of the membership: nodes, standing orders on nodes, and whether self-preservation holds."""

from dataclasses import dataclass, field

from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import NO_ORDER, StandingOrder, as_ordered
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import NodeId


@dataclass(frozen=True, slots=True)
class MembershipImage:
    """The part of the state that is about nodes.

    Attributes:
        nodes: members by name, those that left included (for their incarnation).
        orders: standing orders by node name; names that never joined included, empty orders not.
        evictions_frozen: self-preservation holds: no node is fenced for silence.
    """

    nodes: Entries[NodeId, Node] = field(default_factory=Entries)
    orders: Entries[NodeId, StandingOrder] = field(default_factory=Entries)
    evictions_frozen: bool = False

    def order(self, node_id: NodeId) -> StandingOrder:
        """What operators have said about a node."""
        return self.orders.get(node_id, NO_ORDER)

    def as_ordered(self, node: Node) -> Node:
        """The node with the weight and the zone that count: an operator's before its own."""
        return as_ordered(node, self.order(node.node_id))

    @property
    def data_nodes(self) -> tuple[Node, ...]:
        """The nodes with which slots and bundles may stay, by name."""
        return tuple(node for node in self.nodes.values() if node.may_hold)

    @property
    def placing_nodes(self) -> tuple[Node, ...]:
        """The nodes to which slots and bundles may be given, by name: those that are active, and not excluded."""
        return tuple(node for node in self.nodes.values() if node.places and not self.order(node.node_id).excluded)

    def can_relieve(self, node_id: NodeId) -> bool:
        """Whether there is another node to which what this one holds may be given."""
        return any(node.node_id != node_id for node in self.placing_nodes)

    @property
    def owner_ids(self) -> frozenset[NodeId]:
        """The nodes that are to own slots and bundles: those to which they may be given.

        If there are none, the draining ones keep what they hold, because otherwise no node would hold it, and if there
        are none of those either, the excluded ones do.
        """
        living = self.data_nodes
        wanted = [node for node in living if not self.order(node.node_id).excluded]
        return frozenset(node.node_id for node in self.placing_nodes or wanted or living)

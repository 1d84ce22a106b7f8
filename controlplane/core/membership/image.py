"""The image of the membership: nodes, standing orders, and whether evictions are frozen."""

from dataclasses import dataclass, field
from typing import TypeAlias

from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import NO_ORDER, StandingOrder, as_ordered
from controlplane.core.values.canonical import later
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, Seq
from controlplane.core.values.image import Image

Member: TypeAlias = tuple[NodeId, Incarnation]


@dataclass(frozen=True)
class MembershipImage(Image):
    """The membership's part of the state.

    Attributes:
        nodes: nodes by name, including those that left, because their incarnation is still needed, until they are
            forgotten.
        orders: standing orders by node name. A name need not have joined; empty orders are not kept.
        evictions_frozen: whether self-preservation keeps nodes from being fenced for silence.
        fenced_lately: the log time at which a process was last fenced for silence, also if its node lives again. Those
            within the protection window before the latest one are kept; none below feature level 3.
        dated_by: the decision that admitted a node or, of one that left, removed it; none below feature level 3. Ticks
            that name the decision say when this was, in every partition.
        admitted_in: the epoch in which the present process of a node was admitted; none below feature level 3. What a
            process says of slots by an earlier table is of copies that it has given up.
    """

    nodes: Entries[NodeId, Node] = field(default_factory=Entries)
    orders: Entries[NodeId, StandingOrder] = field(default_factory=Entries)
    evictions_frozen: bool = False
    fenced_lately: Entries[Member, int] = field(default_factory=Entries, metadata=later(since_level=3))
    dated_by: Entries[NodeId, Seq] = field(default_factory=Entries, metadata=later(since_level=3))
    admitted_in: Entries[NodeId, Epoch] = field(default_factory=Entries, metadata=later(since_level=3))

    def date_of(self, node_id: NodeId) -> Seq:
        """The decision by which a node is dated; 0 for one that is not, which a whole log does not have."""
        return self.dated_by.get(node_id, Seq(0))

    def order(self, node_id: NodeId) -> StandingOrder:
        """The standing order for a node; :data:`NO_ORDER` without one."""
        return self.orders.get(node_id, NO_ORDER)

    def as_ordered(self, node: Node) -> Node:
        """The node with weight and zone of its standing order, where that sets them."""
        return as_ordered(node, self.order(node.node_id))

    @property
    def data_nodes(self) -> tuple[Node, ...]:
        """The nodes that may keep slots and bundles, by name."""
        return tuple(node for node in self.nodes.values() if node.may_hold)

    @property
    def placing_nodes(self) -> tuple[Node, ...]:
        """The nodes that may receive slots and bundles, by name: active data nodes that are not excluded."""
        return tuple(node for node in self.nodes.values() if node.places and not self.order(node.node_id).excluded)

    def can_relieve(self, node_id: NodeId) -> bool:
        """Whether another node may receive what this node holds."""
        return any(node.node_id != node_id for node in self.placing_nodes)

    @property
    def owner_ids(self) -> frozenset[NodeId]:
        """The names of the nodes that are to own slots and bundles.

        These are the nodes that may receive them. Without any, the draining nodes that are not excluded, and without
        those the excluded ones: slots and bundles stay with such nodes rather than having no holder.
        """
        living = self.data_nodes
        wanted = [node for node in living if not self.order(node.node_id).excluded]
        return frozenset(node.node_id for node in self.placing_nodes or wanted or living)

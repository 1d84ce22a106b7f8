"""Routing by ring: the nodes of a key by HiveMQ's rings of the nodes in the table, without slots."""

from dataclasses import dataclass

from controlplane.core.routing.node_rings import ring_members, rings_of
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.ring.member_rings import MemberRings
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId, Term
from controlplane.errors import ConfigurationError
from controlplane.routing.route import address_named, addresses_of


@dataclass(frozen=True, slots=True)
class RingRoute:
    """The nodes of a key by ring. No decision gave them the key, so there is no fencing token.

    Attributes:
        node_id: the responsible node, the key's owner on the primary ring.
        addresses: the addresses at which it serves, by name.
        replicas: the nodes that have copies, on the primary ring; the responsible node is not among them.
        writable: the nodes to which the responsible one passes on each write: ``replicas``, and while nodes are
            draining, also those that will own the key or have copies without them.
        term: of the table.
        epoch: of the table.
    """

    node_id: NodeId
    addresses: tuple[Address, ...]
    replicas: frozenset[NodeId]
    writable: frozenset[NodeId]
    term: Term
    epoch: Epoch

    @property
    def readable(self) -> frozenset[NodeId]:
        """The nodes that have all data of the key: the responsible one and its replicas."""
        return self.replicas | {self.node_id}

    def address(self, name: str) -> Address:
        """The responsible node's address of that name.

        Raises:
            UnroutableError: the node has none.
        """
        return address_named(self.addresses, name, self.node_id)


class TableRing:
    """Routes keys by ring in one table. All readers of the same table get the same answers.

    Draining nodes are on the primary ring only, active ones on both. Weights, zones and orders that exclude a node from
    slots do not matter.

    Args:
        table: the table.
        rings: the rings of the table's nodes, if they are known from a former table.

    Raises:
        UnroutableError: a newer version wrote the row of a node, so the rings cannot be known.
    """

    def __init__(self, table: RoutingTable, rings: MemberRings | None = None) -> None:
        self.table = table
        self._members = ring_members(table)
        self._rings = rings_of(self._members) if rings is None else rings

    def in_table(self, table: RoutingTable) -> "TableRing":
        """The same for another table, with the same rings if its nodes are the same.

        Raises:
            UnroutableError: a newer version wrote the row of a node.
        """
        return TableRing(table, self._rings if ring_members(table) == self._members else None)

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes on the primary ring, by name."""
        return tuple(node_id for node_id, _ in self._members)

    def route(self, key: str, count: int | None = None) -> RingRoute:
        """The nodes of a key.

        Args:
            key: any text, unpaired surrogates included.
            count: copies beside that of the responsible node, as far as there are nodes; by default one fewer
                than the policy's ``replica_count``, which counts the first copy, too.

        Raises:
            NoRouteError: there is no data node.
            TypeError: the key is not a text, or the count no whole number. Clients in other languages hash texts, too:
                decode bytes first.
            ConfigurationError: the count is negative.
        """
        _check_count(count)
        count = self.table.settings.replica_count - 1 if count is None else count
        owner = self._rings.responsible(key)
        return RingRoute(
            owner,
            addresses_of(self.table, owner),
            self._rings.primary.replicas(key, count),
            self._rings.writable(key, count),
            self.table.term,
            self.table.epoch,
        )

    def owner(self, key: str) -> NodeId:
        """The responsible node of a key; see :meth:`route` for the errors."""
        return self._rings.responsible(key)


def _check_count(count: object) -> None:
    if count is None:
        return
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"count is {count!r:.80}, expected a whole number of copies, or None")
    if count < 0:
        raise ConfigurationError(f"count is {count}, expected 0 or more copies beside that of the responsible node")

"""Routes: the node that serves a key, with its addresses and the numbers of its ownership."""

from dataclasses import dataclass

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import node_key
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId, Term
from controlplane.errors import NoRouteError, UnroutableError


@dataclass(frozen=True, slots=True)
class Route:
    """The node that serves a key.

    Attributes:
        node_id: the slot leader.
        addresses: the addresses at which it serves, by name.
        slot_id: the key's slot.
        term: of the table; with ``leader_epoch`` it is the slot's fencing token.
        epoch: of the table.
        leader_epoch: the epoch in which the slot's leader, or the process of that node, last changed.
        followers: the other replicas.
    """

    node_id: NodeId
    addresses: tuple[Address, ...]
    slot_id: SlotId
    term: Term
    epoch: Epoch
    leader_epoch: Epoch
    followers: tuple[NodeId, ...]

    def address(self, name: str) -> Address:
        """The node's address of that name.

        Raises:
            UnroutableError: the node has none.
        """
        return address_named(self.addresses, name, self.node_id)


@dataclass(frozen=True, slots=True)
class BundleRoute:
    """The node that serves a namespace's key.

    Attributes:
        node_id: the bundle's owner.
        addresses: the addresses at which it serves, by name.
        bundle_id: the key's bundle.
        term: of the table.
        epoch: of the table.
    """

    node_id: NodeId
    addresses: tuple[Address, ...]
    bundle_id: str
    term: Term
    epoch: Epoch

    def address(self, name: str) -> Address:
        """The node's address of that name.

        Raises:
            UnroutableError: the node has none.
        """
        return address_named(self.addresses, name, self.node_id)


def route_in(table: RoutingTable, key: bytes | str) -> Route:
    """The route of a key in one table.

    Raises:
        NoRouteError: the key's slot has no leader in this epoch.
        UnroutableError: a newer version wrote its row or its leader's.
    """
    slot = table.slot_for(key)
    if slot.leader is None:
        raise NoRouteError(f"slot {slot.slot_id} has no leader in epoch {table.epoch}: wait for the next epoch")
    addresses = addresses_of(table, slot.leader)
    return Route(slot.leader, addresses, slot.slot_id, table.term, table.epoch, slot.leader_epoch, slot.followers)


def bundle_route_in(table: RoutingTable, namespace: str, key: bytes | str) -> BundleRoute:
    """The route of a namespace's key in one table.

    Raises:
        NoRouteError: there is no such namespace, or the key's bundle has no owner in this epoch.
        UnroutableError: a newer version wrote its row or its owner's.
    """
    bundle = table.bundle_for(namespace, key)
    if bundle.owner is None:
        raise NoRouteError(f"bundle {bundle.bundle_id} has no owner in epoch {table.epoch}: wait for the next epoch")
    return BundleRoute(bundle.owner, addresses_of(table, bundle.owner), bundle.bundle_id, table.term, table.epoch)


def addresses_of(table: RoutingTable, node_id: NodeId) -> tuple[Address, ...]:
    """The addresses of a node, by name; none for an unknown one.

    Raises:
        UnroutableError: a newer version wrote its row.
    """
    table.require_readable(node_key(node_id))
    row = table.nodes.get(node_id)
    return row.addresses if row else ()


def address_named(addresses: tuple[Address, ...], name: str, node_id: NodeId) -> Address:
    """The address of this name.

    Raises:
        UnroutableError: the node has none.
    """
    for address in addresses:
        if address.name == name:
            return address
    known = ", ".join(address.name for address in addresses) or "none at all"
    raise UnroutableError(f"node {node_id!r} has no address {name!r}, it has {known}")

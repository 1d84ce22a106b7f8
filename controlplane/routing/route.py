"""Routes: the node that serves a key, with its addresses and the numbers of its ownership."""

from dataclasses import dataclass
from typing import Final

from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.routing.rows import node_key
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId, Term
from controlplane.errors import NoRouteError, UnroutableError

_NOT_OWNED: Final = Epoch(0)


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
    """The node to which requests for a namespace's key go.

    While the bundle is handed off, no node may serve it, and ``is_served`` is False: ``node_id`` is then the node that
    it goes to. That node answers as one that is still migrating until it is the owner and has opened the bundle. A
    client may ask it at once and repeat the request, or wait for a later epoch.

    Attributes:
        node_id: the bundle's owner or, while it is handed off, its next owner.
        addresses: the addresses of that node, by name.
        bundle_id: the key's bundle.
        term: of the table; with ``owner_epoch`` it is the bundle's fencing token.
        epoch: of the table.
        is_served: whether that node may serve the bundle in this epoch.
        state: the state of the bundle's ownership.
        owner_epoch: the epoch in which the node became its owner; 0 while it is not yet, and below feature level 3.
    """

    node_id: NodeId
    addresses: tuple[Address, ...]
    bundle_id: str
    term: Term
    epoch: Epoch
    is_served: bool
    state: OwnershipState
    owner_epoch: Epoch

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
        NoRouteError: there is no such namespace, or the key's bundle has neither an owner that may serve it nor a next
            one in this epoch, or the next one has left.
        UnroutableError: a newer version wrote its row or that of the node.
    """
    bundle = table.bundle_for(namespace, key)
    serving = bundle.serving_node
    node_id = bundle.next_owner if serving is None else serving
    if node_id is None:
        problem = "has no owner" if bundle.owner is None else f"is being released by {bundle.owner!r}"
        raise NoRouteError(f"bundle {bundle.bundle_id} {problem} in epoch {table.epoch}: wait for the next epoch")
    addresses = addresses_of(table, node_id)
    if serving is None and node_id not in table.nodes:
        problem = f"goes to {node_id!r}, which has left"
        raise NoRouteError(f"bundle {bundle.bundle_id} {problem} in epoch {table.epoch}: wait for the next epoch")
    return BundleRoute(
        node_id,
        addresses,
        bundle.bundle_id,
        table.term,
        table.epoch,
        is_served=serving is not None,
        state=bundle.ownership_state,
        owner_epoch=_NOT_OWNED if serving is None else bundle.owner_epoch,
    )


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

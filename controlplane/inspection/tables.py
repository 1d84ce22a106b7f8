"""The routing table as rows and as a document."""

from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.log.state import State
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.table import NodeSlots, by_node
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.core.values.identifiers import NamespaceName, NodeId
from controlplane.inspection.orders import order_text, slot_order_rows, slot_orders
from controlplane.inspection.records import Record, Records

SLOT_FIELDS = ("slot", "leader", "followers", "leader_epoch", "orders")
BUNDLE_FIELDS = ("bundle", "state", "owner", "next_owner", "owner_epoch")
NAMESPACE_FIELDS = ("namespace", "bundles", "owners")
BUNDLE_OF_NAMESPACE_FIELDS = ("bundle", "lower", "upper", "owner", "status", "addresses")
NODE_FIELDS = ("node", "status", "orders", "leads", "follows", "bundles", "leads_slots", "follows_slots")


def slot_rows(table: RoutingTable, state: State) -> Records:
    """A row for each slot; ``orders`` are the nodes that it is pinned to and those that must not hold it."""
    orders = slot_orders(state)
    return [
        {
            "slot": slot.slot_id,
            "leader": slot.leader,
            "followers": list(slot.followers),
            "leader_epoch": slot.leader_epoch,
            "orders": list(orders.get(slot.slot_id, [])),
        }
        for slot in table.slots
    ]


def bundle_rows(table: RoutingTable) -> Records:
    """A row for each bundle, by its id. The owner of a bundle that is *Releasing* does not serve it any more."""
    return [
        {
            "bundle": bundle_id,
            "state": bundle.ownership_state.value,
            "owner": bundle.owner,
            "next_owner": bundle.next_owner,
            "owner_epoch": bundle.owner_epoch,
        }
        for bundle_id, bundle in sorted(table.bundles.items())
    ]


def namespace_rows(table: RoutingTable) -> list[Record]:
    """A row for each namespace, by name; owners in the order of its bundles."""
    rows: list[Record] = []
    for name in sorted(table.namespaces):
        bundles = sorted(
            (bundle for bundle in table.bundles.values() if bundle.namespace == name), key=lambda bundle: bundle.lower
        )
        rows.append({"namespace": name, "bundles": len(bundles), "owners": [bundle.owner for bundle in bundles]})
    return rows


def bundles_of_namespace(table: RoutingTable, name: NamespaceName) -> list[Record]:
    """A row for each bundle of a namespace, ascending: its bounds, its owner, and that node's status and addresses.

    ``lower`` is the first hash and ``upper`` the one after the last, except that of the last bundle, 0xffffffff, which
    it holds.
    """
    rows: list[Record] = []
    bundles = (bundle for bundle in table.bundles.values() if bundle.namespace == name)
    for bundle in sorted(bundles, key=lambda each: each.lower):
        node = None if bundle.owner is None else table.nodes.get(bundle.owner)
        rows.append(
            {
                "bundle": bundle.bundle_id,
                "lower": f"{bundle.lower:#010x}",
                "upper": f"{min(bundle.upper, LAST_HASH):#010x}",
                "owner": bundle.owner,
                "status": None if node is None else node.status.value,
                "addresses": addresses_of(table, bundle.owner),
            }
        )
    return rows


def addresses_of(table: RoutingTable, node_id: NodeId | None) -> list[CanonicalValue]:
    """The addresses of a node as ``name=host:port``; none for a node that is not in the table."""
    row = None if node_id is None else table.nodes.get(node_id)
    return [f"{each.name}={each.host}:{each.port}" for each in row.addresses] if row else []


def node_rows(table: RoutingTable, state: State) -> Records:
    """A row for each node: the slots that it leads and follows, its bundles, and its standing orders."""
    held = by_node(table.slots)
    owned: dict[str, list[CanonicalValue]] = {}
    for bundle_id, bundle in sorted(table.bundles.items()):
        if bundle.owner is not None:
            owned.setdefault(bundle.owner, []).append(bundle_id)
    rows = []
    for node_id, node in sorted(table.nodes.items()):
        slots = held.get(node_id, NodeSlots(node_id, (), ()))
        rows.append(
            {
                "node": node_id,
                "status": node.status.value,
                "orders": order_text(state, node_id),
                "leads": len(slots.leads),
                "follows": len(slots.follows),
                "bundles": owned.get(node_id, []),
                "leads_slots": slot_ranges(slots.leads),
                "follows_slots": slot_ranges(slots.follows),
            }
        )
    return rows


def table_document(table: RoutingTable, state: State, rows_name: str, rows: Records) -> CanonicalValue:
    """The table's header with the given rows, the bundles, and the pins and exclusions of slots, for programs."""
    return {
        "epoch": table.epoch,
        "term": table.term,
        "seq": table.seq,
        "log_id": table.log_id,
        "digest": table.digest,
        "settings": to_canonical(table.settings),
        "paused": state.slots.paused,
        rows_name: [dict(row) for row in rows],
        "bundles": [dict(row) for row in bundle_rows(table)],
        "orders": [dict(row) for row in slot_order_rows(state)],
    }

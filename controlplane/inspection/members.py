"""The members of a cluster as rows: what the table says of them and what their last heartbeats say."""

from controlplane.core.log.state import State
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.table import NodeSlots, by_node
from controlplane.core.values.identifiers import NodeId
from controlplane.inspection.orders import order_text
from controlplane.inspection.readers import HeartbeatTail
from controlplane.inspection.rows import Row, Rows, empty_row

MEMBER_FIELDS = (
    "node",
    "role",
    "status",
    "orders",
    "incarnation",
    "zone",
    "weight",
    "addresses",
    "slots_led",
    "slots_followed",
    "bundles",
    "epoch_in_use",
    "epoch_lag",
    "since_heartbeat_ms",
)


def member_rows(table: RoutingTable, tail: HeartbeatTail, state: State) -> Rows:
    """A row for each node, by name; ``weight`` and ``zone`` are those that count, ``orders`` what operators said.

    Names that only orders know have a row too: somebody may have mistyped them, or waits for the node to join.

    ``epoch_in_use`` is the epoch of the table that the node said to work with, ``epoch_lag`` how far that is behind;
    ``since_heartbeat_ms`` is log time. All three are empty where no heartbeat of the node's incarnation was found.
    """
    held = by_node(table.slots)
    owners = [bundle.owner for bundle in table.bundles.values()]
    rows: list[Row] = []
    for node_id, node in sorted(table.nodes.items()):
        slots = held.get(node_id, NodeSlots(node_id, (), ()))
        last = tail.last.get(node_id)
        current = last if last is not None and last.heartbeat.incarnation == node.incarnation else None
        rows.append(
            {
                "node": node_id,
                "role": node.role.value,
                "status": node.status.value,
                "orders": order_text(state, node_id),
                "incarnation": node.incarnation,
                "zone": node.zone,
                "weight": node.weight,
                "addresses": [f"{address.name}={address.host}:{address.port}" for address in node.addresses],
                "slots_led": len(slots.leads),
                "slots_followed": len(slots.follows),
                "bundles": owners.count(node_id),
                "epoch_in_use": current.heartbeat.table_epoch if current else None,
                "epoch_lag": max(0, table.epoch - current.heartbeat.table_epoch) if current else None,
                "since_heartbeat_ms": tail.now_ms - current.append_time_ms if current else None,
            }
        )
    unknown = state.membership.orders.keys() - table.nodes.keys()
    return sorted([*rows, *(_ordered_row(state, node_id) for node_id in unknown)], key=lambda row: str(row["node"]))


def _ordered_row(state: State, node_id: NodeId) -> Row:
    """A name for which something is ordered, and which no node in the table bears."""
    order = state.order(node_id)
    known = state.nodes.get(node_id)
    return empty_row(MEMBER_FIELDS) | {
        "node": node_id,
        "status": known.status.value if known else "not joined",
        "orders": order_text(state, node_id),
        "zone": order.zone,
        "weight": order.weight,
    }

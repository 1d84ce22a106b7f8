"""The members of a cluster as rows, from the table and from their last heartbeats."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.core.log.state import State
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.table import NodeSlots, by_node
from controlplane.core.values.identifiers import NodeId
from controlplane.inspection.orders import order_text
from controlplane.inspection.readers import HeartbeatTail
from controlplane.inspection.records import Record, Records, empty_record

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


@dataclass(frozen=True, slots=True)
class Liveness:
    """Which members are live, and at which log time.

    Attributes:
        log_time_ms: the append time of the newest tick or heartbeat; 0 if there is none.
        stands_still_ms: how long ago that was, by this machine's clock; 0 within the silence limit.
        living: how many members are live: their last heartbeat is within the silence limit.
        silent_ms: for each member that lives by the table and is silent beyond the limit, its silence in ms. If no
            heartbeat was found, the time that was searched, as a lower bound.
    """

    log_time_ms: int
    stands_still_ms: int
    living: int
    silent_ms: Mapping[NodeId, int]


def liveness(table: RoutingTable, tail: HeartbeatTail, state: State, wall_ms: int, look_back_ms: int) -> Liveness:
    """Which members are live. Silent ones may be unfenced because evictions are frozen or no controller leads.

    Args:
        table: names the members.
        tail: their last heartbeats.
        state: has the silence limit, and since when each is a member.
        wall_ms: this machine's time. Log time stands still when neither controllers nor nodes write.
        look_back_ms: how far back heartbeats were searched.
    """
    limit_ms = state.cluster.silence_limit_ms
    stands_still_ms = wall_ms - tail.now_ms if tail.now_ms and wall_ms - tail.now_ms > limit_ms else 0
    living = [node_id for node_id, node in table.nodes.items() if node.status.lives]
    silent_ms = {}
    for node_id in living:
        last, node = tail.last.get(node_id), state.membership.nodes.get(node_id)
        if last is not None and last.heartbeat.incarnation == table.nodes[node_id].incarnation:
            silence_ms = tail.age_ms(last)
        elif node is not None:
            silence_ms = min(max(0, tail.now_ms - node.changed_at_ms), look_back_ms)
        else:
            silence_ms = 0  # it joined after the table was read
        if silence_ms + stands_still_ms > limit_ms:
            silent_ms[node_id] = silence_ms + stands_still_ms
    return Liveness(tail.now_ms, stands_still_ms, len(living) - len(silent_ms), silent_ms)


def member_rows(
    table: RoutingTable, tail: HeartbeatTail, state: State, silent_ms: Mapping[NodeId, int] | None = None
) -> Records:
    """A row for each node, by name; ``weight`` and ``zone`` are the effective ones, ``orders`` the standing orders.

    A name with standing orders and without a node has a row too: it may be mistyped, or the node has not joined yet.

    ``epoch_in_use`` is the epoch of the table that the node reported to use, ``epoch_lag`` how many epochs that is
    behind; ``since_heartbeat_ms`` is log time. These three are empty if no heartbeat of the node's incarnation was
    found.
    ``silent_ms`` is that of :class:`Liveness`.
    """
    held, silent_ms = by_node(table.slots), silent_ms or {}
    owned = Counter(bundle.owner for bundle in table.bundles.values())
    rows: list[Record] = []
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
                "bundles": owned[node_id],
                "epoch_in_use": current.heartbeat.table_epoch if current else None,
                "epoch_lag": max(0, table.epoch - current.heartbeat.table_epoch) if current else None,
                "since_heartbeat_ms": tail.age_ms(current) if current else None,
                "silent_ms": silent_ms.get(node_id),
            }
        )
    unknown = state.membership.orders.keys() - table.nodes.keys()
    return sorted([*rows, *(_ordered_row(state, node_id) for node_id in unknown)], key=lambda row: str(row["node"]))


def _ordered_row(state: State, node_id: NodeId) -> Record:
    """The row of a name that has standing orders and no node in the table."""
    order = state.membership.order(node_id)
    known = state.membership.nodes.get(node_id)
    return empty_record(MEMBER_FIELDS) | {
        "node": node_id,
        "status": known.status.value if known else "not joined",
        "orders": order_text(state, node_id),
        "zone": order.zone,
        "weight": order.weight,
        "silent_ms": None,
    }

"""Operators' orders as rows: standing orders on nodes, pins and exclusions of slots."""

from collections.abc import Iterable
from itertools import groupby

from controlplane.core.log.state import State
from controlplane.core.membership.standing_orders import NO_ORDER
from controlplane.core.operations.slot_numbers import slot_ranges
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.inspection.records import Record


def order_text(state: State, node_id: NodeId) -> str:
    """The standing orders on a node id, as a short text; empty if there are none."""
    order = state.membership.orders.get(node_id, NO_ORDER)
    parts = ["excluded"] if order.excluded else []
    parts += [] if order.weight is None else [f"weight {order.weight}"]
    parts += [] if order.zone is None else [f"zone {order.zone or 'none'}"]
    node = state.membership.nodes.get(node_id)
    parts += ["leaving"] if node is not None and node.lives and node.leaving else []
    return ", ".join(parts)


def slot_order_rows(state: State) -> list[Record]:
    """A row for each node and kind of order on slots: pinned, pinned to lead, excluded."""
    leading = [pin for pin in state.slots.pins if pin.leads]
    other = [pin for pin in state.slots.pins if not pin.leads]
    return [
        *_rows("pinned as leader", leading),
        *_rows("pinned", other),
        *_rows("excluded", state.slots.exclusions),
    ]


def _rows(order: str, entries: Iterable[Pin | Exclusion]) -> list[Record]:
    by_node = sorted((each.node_id, each.slot_id) for each in entries)
    return [
        {"order": order, "node": node_id, "slots": slot_ranges(slot_id for _, slot_id in group)}
        for node_id, group in groupby(by_node, key=lambda each: each[0])
    ]


def slot_orders(state: State) -> dict[SlotId, list[str]]:
    """The pins and exclusions of each slot, as short texts; slots without any are missing."""
    found: dict[SlotId, list[str]] = {}
    for pin in state.slots.pins:
        found.setdefault(pin.slot_id, []).append(f"{pin.node_id} leads" if pin.leads else pin.node_id)
    for exclusion in state.slots.exclusions:
        found.setdefault(exclusion.slot_id, []).append(f"not {exclusion.node_id}")
    return found

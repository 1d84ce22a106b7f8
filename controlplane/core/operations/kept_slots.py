"""Slots that a drained or excluded node has to keep, because no other node may hold them."""

from collections.abc import Collection

from controlplane.core.log.state import State
from controlplane.core.slots.survivors import slots_text, stranded_slots
from controlplane.core.values.identifiers import NodeId, SlotId


def kept_slots(state: State, node_id: NodeId, *, supports_exclusions: bool) -> tuple[SlotId, ...]:
    """The slots that a node would keep if it were drained or excluded, because no other node may hold them.

    Args:
        state: the state with its standing orders.
        node_id: the node.
        supports_exclusions: whether the slot policy obeys exclusions of slots.
    """
    living = frozenset(node.node_id for node in state.membership.data_nodes)
    weighing = [node.node_id for node in state.membership.data_nodes if _weighs(state, node.node_id)]
    owners = state.membership.owner_ids.intersection(weighing)
    exclusions = state.slots.exclusions if supports_exclusions else ()
    stranded = stranded_slots(state.slots.table, living, owners, exclusions)
    return tuple(slot.slot_id for slot in stranded if node_id in slot.replicas)


def kept_text(slot_ids: Collection[SlotId]) -> str:
    """The sentence about the slots that a node keeps; empty without any."""
    them = "it" if len(slot_ids) == 1 else "them"
    return f"keeps {slots_text(slot_ids)}: no other node may hold {them}" if slot_ids else ""


def _weighs(state: State, node_id: NodeId) -> bool:
    """Whether a node's effective weight is greater than 0, apart from an exclusion."""
    weight = state.membership.order(node_id).weight
    return (state.membership.nodes[node_id].weight if weight is None else weight) > 0

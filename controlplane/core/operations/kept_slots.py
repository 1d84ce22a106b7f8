"""The slots that a node keeps although it is to be relieved of them, because no other node may hold them."""

from collections.abc import Collection

from controlplane.core.log.state import State
from controlplane.core.slots.survivors import slots_text, stranded_slots
from controlplane.core.values.identifiers import NodeId, SlotId


def kept_slots(state: State, node_id: NodeId, *, heeds_exclusions: bool) -> tuple[SlotId, ...]:
    """The slots that a node keeps although it is to be relieved of them, because they can be given to nobody.

    Args:
        state: with the orders that stand.
        node_id: of whom.
        heeds_exclusions: whether the slot policy looks at exclusions of slots.
    """
    living = frozenset(node.node_id for node in state.membership.data_nodes)
    weighing = [node.node_id for node in state.membership.data_nodes if _weighs(state, node.node_id)]
    owners = state.membership.owner_ids.intersection(weighing)
    exclusions = state.slots.exclusions if heeds_exclusions else ()
    stranded = stranded_slots(state.slots.table, living, owners, exclusions)
    return tuple(slot.slot_id for slot in stranded if node_id in slot.replicas)


def kept_text(slot_ids: Collection[SlotId]) -> str:
    """What a node keeps, for people; empty if it is nothing."""
    them = "it" if len(slot_ids) == 1 else "them"
    return f"keeps {slots_text(slot_ids)}: no other node may hold {them}" if slot_ids else ""


def _weighs(state: State, node_id: NodeId) -> bool:
    """Whether a node has a weight of its own, or by an order, whether it is excluded or not."""
    weight = state.membership.order(node_id).weight
    return (state.membership.nodes[node_id].weight if weight is None else weight) > 0

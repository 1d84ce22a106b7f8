"""The node ids that a cluster knows."""

from controlplane.core.log.state import State
from controlplane.core.values.identifiers import NodeId


def known_nodes(state: State) -> set[NodeId]:
    """The ids of members, fenced ones included, and ids with standing orders."""
    pinned = {pin.node_id for pin in state.slots.pins}
    excluded = {exclusion.node_id for exclusion in state.slots.exclusions}
    return {*state.membership.nodes, *state.membership.orders, *pinned, *excluded}

"""Who is to own what after the membership changed: slots by the slot policy, bundles by the fewest."""

from controlplane.core.bundles import assign_orphans
from controlplane.core.draft import Draft
from controlplane.core.events import BundlesAssigned, NodeAdmitted, SlotsAssigned
from controlplane.core.identifiers import NodeId
from controlplane.core.membership import Node
from controlplane.core.observations import Observations
from controlplane.core.placement.minimal import PlacementNode, plan
from controlplane.core.records import NodeRole
from controlplane.core.slot_table import without_nodes


def plan_ownership(draft: Draft, observations: Observations) -> None:
    """Add the least change that gives every slot its replicas and every bundle an owner among the nodes that place."""
    _plan_slots(draft, observations)
    state = draft.state
    owners = tuple(node.node_id for node in _owners(draft))
    changed = assign_orphans(tuple(state.bundles.values()), owners)
    if changed:
        draft.add(BundlesAssigned(changed))


def _plan_slots(draft: Draft, observations: Observations) -> None:
    state = draft.state
    owners = _owners(draft)
    previous = without_nodes(state.slots, _newly_admitted(draft))
    members = [(node.node_id, node.incarnation) for node in owners]
    planned = plan(
        previous,
        [PlacementNode(node.node_id, node.weight, node.capacity) for node in owners],
        state.policy.replica_count,
        draft.epoch,
        observations.ready_replicas(members),
    )
    rows = {slot.slot_id: slot for slot in planned.slots}
    changed = tuple(
        after
        for before, purged in zip(state.slots, previous, strict=True)
        if (after := rows.get(before.slot_id, purged)) != before
    )
    draft.certificate = planned.certificate
    if changed:
        draft.add(SlotsAssigned(changed))


def _owners(draft: Draft) -> tuple[Node, ...]:
    """Active data nodes; if there are none, draining ones keep what they hold rather than leave it to nobody."""
    active = draft.state.placing_nodes
    if active:
        return active
    nodes = (node for _, node in sorted(draft.state.nodes.items()))
    return tuple(node for node in nodes if node.lives and node.role is NodeRole.DATA)


def _newly_admitted(draft: Draft) -> frozenset[NodeId]:
    """Nodes that this decision admits: whatever a process of that name held until now, the new one holds nothing."""
    return frozenset(event.node.node_id for event in draft.events if isinstance(event, NodeAdmitted))

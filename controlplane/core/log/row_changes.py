"""From states to rows: which rows of the routing table a state has, and which a decision changes."""

from collections.abc import Iterable

from controlplane.core.bundles.events import BundlesAssigned, NamespaceCreated
from controlplane.core.cluster.events import ClusterCreated, PolicyChanged, TermOpened
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import (
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
)
from controlplane.core.membership.node import NodeStatus
from controlplane.core.routing.rows import (
    SETTINGS_KEY,
    NodeRow,
    Row,
    TableSettings,
    bundle_key,
    key_of,
    namespace_key,
    node_key,
    slot_key,
)
from controlplane.core.slots.events import SlotsAssigned, SlotsSplit
from controlplane.core.values.identifiers import NodeId


def table_settings(state: State) -> TableSettings | None:
    """The settings row; None before the cluster exists."""
    if not state.log_id:
        return None
    policy = state.cluster.policy
    return TableSettings(policy.slot_count, policy.replica_count, policy.hash_function, policy.silence_limit_ms)


def rows_of(state: State) -> dict[str, Row]:
    """Every row of the routing table by key."""
    settings = table_settings(state)
    nodes = (_node_row(state, node_id) for node_id in sorted(state.membership.nodes))
    rows: list[Row | None] = [
        settings,
        *state.slots.table,
        *nodes,
        *state.bundles.namespaces.values(),
        *state.bundles.by_id.values(),
    ]
    return {key_of(row): row for row in rows if row is not None}


def changed_rows(before: State, after: State, events: Iterable[Event]) -> dict[str, Row | None]:
    """The rows that ``events`` changed between two states, in order of keys' first touch; None removes a row.

    Its cost is that of the change, not of the table.
    """
    touched: dict[str, None] = {}
    for event in events:
        touched.update(dict.fromkeys(_touched_keys(event)))
    changed: dict[str, Row | None] = {}
    for key in touched:
        new = _row(after, key)
        if new != _row(before, key):
            changed[key] = new
    return changed


def _touched_keys(event: Event) -> list[str]:
    match event:
        case ClusterCreated(policy=policy):
            return [SETTINGS_KEY, *(slot_key(slot_id) for slot_id in range(policy.slot_count))]
        case TermOpened() | PolicyChanged():
            return [SETTINGS_KEY]
        case NodeAdmitted(node=node):
            return [node_key(node.node_id)]
        case NodeDraining() | NodeUndrained() | NodeFenced() | NodeRemoved() | NodeOrdered():
            return [node_key(event.node_id)]
        case SlotsAssigned(slots=slots) | SlotsSplit(slots=slots):
            return [slot_key(slot.slot_id) for slot in slots]
        case NamespaceCreated(namespace=namespace, bundles=bundles):
            return [namespace_key(namespace.name), *(bundle_key(bundle.bundle_id) for bundle in bundles)]
        case BundlesAssigned(bundles=bundles):
            return [bundle_key(bundle.bundle_id) for bundle in bundles]
        case _:
            return []


def _row(state: State, key: str) -> Row | None:
    _, kind, identifier = key.split("/", 2)
    match kind:
        case "table":
            return table_settings(state)
        case "slot":
            slot_id = int(identifier)
            return state.slots.table[slot_id] if slot_id < len(state.slots.table) else None
        case "node":
            return _node_row(state, identifier)
        case "namespace":
            return state.bundles.namespaces.get(identifier)
        case _:
            return state.bundles.by_id.get(identifier)


def _node_row(state: State, node_id: NodeId) -> NodeRow | None:
    known = state.membership.nodes.get(node_id)
    if known is None or known.status is NodeStatus.LEFT:
        return None
    node = state.membership.as_ordered(known)
    return NodeRow(
        node.node_id,
        node.incarnation,
        node.role,
        node.status,
        node.addresses,
        node.zone,
        node.weight,
        node.version,
    )

"""From states to rows: which rows of the routing table a state has, and which a decision changes."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from controlplane.core.bundles.events import BundleEvent
from controlplane.core.bundles.rows import touched_bundles, touched_namespaces
from controlplane.core.cluster.events import ClusterCreated, ClusterEvent
from controlplane.core.cluster.rows import table_settings
from controlplane.core.intents.events import IntentEvent
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.events import MembershipEvent
from controlplane.core.membership.rows import node_row, touched_nodes
from controlplane.core.routing.rows import (
    SETTINGS_KEY,
    Row,
    bundle_key,
    key_of,
    namespace_key,
    node_key,
    slot_key,
    split_key,
)
from controlplane.core.slots.events import SlotEvent
from controlplane.core.slots.rows import touched_slots


def rows_of(state: State) -> dict[str, Row]:
    """Every row of the routing table by key."""
    settings = table_settings(state.cluster.policy) if state.log_id else None
    nodes = (node_row(state.membership, node_id) for node_id in state.membership.nodes)
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


def _touched_keys(event: Event) -> Iterator[str]:
    if isinstance(event, SlotEvent):
        yield from map(slot_key, touched_slots(event))
    elif isinstance(event, MembershipEvent):
        yield from map(node_key, touched_nodes(event))
    elif isinstance(event, BundleEvent):
        yield from map(namespace_key, touched_namespaces(event))
        yield from map(bundle_key, touched_bundles(event))
    elif isinstance(event, ClusterEvent):
        yield SETTINGS_KEY
        if isinstance(event, ClusterCreated):
            yield from map(slot_key, range(event.policy.slot_count))
    elif isinstance(event, IntentEvent):
        return  # intents have no rows
    else:
        assert_never(event)


def _row(state: State, key: str) -> Row | None:
    kind, identifier = split_key(key)
    match kind:
        case "table":
            return table_settings(state.cluster.policy) if state.log_id else None
        case "slot":
            return state.slots.rows.get(int(identifier))
        case "node":
            return node_row(state.membership, identifier)
        case "namespace":
            return state.bundles.namespaces.get(identifier)
        case _:
            return state.bundles.by_id.get(identifier)

"""The nodes of a key by ring, with all intermediate numbers, to check a client in another language."""

from controlplane.core.routing.node_rings import ring_members, rings_of
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.ring.text_hash import text_hash
from controlplane.core.values.canonical import CanonicalValue
from controlplane.inspection.records import Record, Records


def ring_owner(table: RoutingTable, key: str) -> Record:
    """The node that is responsible for a key, and how it is found.

    Raises:
        NoRouteError: the table has no data node.
        UnroutableError: this version cannot read the row of a node.
    """
    primary = rings_of(ring_members(table)).primary
    found = primary.virtual_node(key)
    row = table.nodes[found.node]
    return {
        **_start(table, key),
        "hash": text_hash(key),
        "virtual_node": found.name,
        "virtual_node_hash": text_hash(found.name),
        "virtual_nodes": len(primary),
        "owner": found.node,
        "addresses": [f"{each.name}={each.host}:{each.port}" for each in row.addresses],
    }


def ring_replicas(table: RoutingTable, key: str, count: int | None) -> Record:
    """The nodes that have copies of a key, and those that are written to.

    Args:
        table: the table.
        key: the key.
        count: copies beside the owner's; None for one fewer than the policy's ``replica_count``.

    Raises:
        NoRouteError: the table has no data node.
        UnroutableError: this version cannot read the row of a node.
    """
    rings = rings_of(ring_members(table))
    wanted = table.settings.replica_count - 1 if count is None else count
    return {
        **_start(table, key),
        "count": wanted,
        "owner": rings.responsible(key),
        "replicas": _names(rings.primary.replicas(key, wanted)),
        "readable": _names(rings.readable(key, wanted)),
        "writable": _names(rings.writable(key, wanted)),
    }


def ring_rows(found: Record) -> Records:
    """A row for each property."""
    return [{"property": name.replace("_", " "), "value": value} for name, value in found.items()]


def _names(nodes: frozenset[str]) -> list[CanonicalValue]:
    return [*sorted(nodes)]


def _start(table: RoutingTable, key: str) -> Record:
    return {
        "key": key,
        "key_bytes": key.encode("utf-16-le").hex(" "),
        "log_id": table.log_id,
        "term": table.term,
        "epoch": table.epoch,
    }

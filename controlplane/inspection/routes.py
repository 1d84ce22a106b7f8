"""The steps from a key to its owner, with all intermediate numbers, to check a client in another language."""

from typing import Final

from controlplane.core.bundles.names import tenant_of
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.routing.hashing import slot_hash
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import NamespaceName
from controlplane.inspection.records import Record, Records
from controlplane.inspection.tables import addresses_of

_TOPIC_DOMAINS: Final = ("persistent", "non-persistent")


def slot_route(table: RoutingTable, key: str) -> Record:
    """A key's slot in one table, and how it is computed.

    While the leader has been told to release the slot, ``next_leader`` is the node that will lead it; neither of them
    may serve it.

    Raises:
        UnroutableError: this version cannot read the row of the slot, or the settings.
    """
    slot = table.slot_for(key)
    settings = table.settings
    hashed = slot_hash(key, settings.hash_function)
    return {
        **_start(table, key),
        "hash_function": settings.hash_function.value,
        "hash": hashed,
        "absolute_hash": abs(hashed),
        "slot_count": settings.slot_count,
        "slot": slot.slot_id,
        "leader": slot.leader,
        "addresses": addresses_of(table, slot.leader),
        "followers": list(slot.followers),
        "leader_epoch": slot.leader_epoch,
        "next_leader": slot.next_leader,
        "next_leader_addresses": addresses_of(table, slot.next_leader),
    }


def bundle_route(table: RoutingTable, namespace: NamespaceName, key: str) -> Record:
    """A key's bundle in one table, and how it is computed.

    ``owner`` is the node that may serve it. While the bundle is handed off there is none: ``releasing_node`` is
    the node that has to release it, until it has, and ``next_owner`` the one that it goes to.

    Raises:
        NoRouteError: the namespace is not in the table.
        UnroutableError: this version cannot read the row of the bundle.
    """
    bundle = table.bundle_for(namespace, key)
    serving = bundle.serving_node
    return {
        **_start(table, key),
        "namespace": namespace,
        "hash_function": "crc32",
        "hash": bundle_hash(key),
        "bundle": bundle.bundle_id,
        "state": bundle.ownership_state.value,
        "owner": serving,
        "addresses": addresses_of(table, serving),
        "owner_epoch": bundle.owner_epoch if serving is not None else None,
        "releasing_node": bundle.owner if serving is None else None,
        "next_owner": bundle.next_owner,
        "next_owner_addresses": addresses_of(table, bundle.next_owner),
    }


def why_unserved(table: RoutingTable, route: Record) -> str:
    """Why no node serves a key whose route this is, and what to wait for; empty if one does."""
    if "slot" in route:
        next_leader = route["next_leader"]
        if route["leader"] is not None and next_leader is None:
            return ""
        if next_leader is not None:
            return (
                f"no node may serve this key in epoch {table.epoch}: its slot is released by node {route['leader']!r} "
                f"and will be led by node {next_leader!r}; wait for a later epoch"
            )
    elif route["owner"] is not None:
        return ""
    following = route.get("next_owner")
    if following is not None:
        return (
            f"no node serves this key in epoch {table.epoch}, its bundle is {route['state']} "
            f"and goes to node {following!r}: wait for a later epoch"
        )
    return f"no node serves this key in epoch {table.epoch}: wait for a later epoch"


def topic_hint(namespace: NamespaceName, key: str) -> str:
    """What to write for a key that looks like a short or a foreign name of a topic of Pulsar; empty for any other.

    A key is hashed as it is given. Pulsar hashes a topic's full name, and completes short names first. Only namespaces
    with a tenant are Pulsar's.
    """
    domain, separator, rest = key.partition("://")
    if tenant_of(namespace) is None:
        return ""
    if not separator:
        name = key.removeprefix(f"{namespace}/")
        return (
            f"{key!r} is hashed as it is; if it is a topic of Pulsar, write its full name: "
            f"persistent://{namespace}/{name} (or non-persistent://...)"
        )
    if domain in _TOPIC_DOMAINS and not rest.startswith(f"{namespace}/"):
        return f"{key!r} is a topic of another namespace than {namespace!r}"
    return ""


def route_rows(route: Record) -> Records:
    """A row for each property; after the numbers, the arithmetic as a formula."""
    rows: list[Record] = [{"property": name.replace("_", " "), "value": value} for name, value in route.items()]
    return [*rows, {"property": "arithmetic", "value": _formula(route)}]


def _formula(route: Record) -> str:
    """The computation that a client has to make, in numbers."""
    if "slot" not in route:
        return f"crc32(key) = {route['hash']:#010x}, within the bounds of the bundle"
    masked = route["hash_function"] == HashFunction.CRC32C.value
    to_slots = f"& ({route['slot_count']} - 1)" if masked else f"mod {route['slot_count']}"
    return f"|{route['hash']}| {to_slots} = {route['slot']}"


def _start(table: RoutingTable, key: str) -> Record:
    return {
        "key": key,
        "key_bytes": key.encode().hex(" "),
        "log_id": table.log_id,
        "term": table.term,
        "epoch": table.epoch,
    }

"""The small table that the reader scripts are about, and what they look up in it."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.rows import (
    MARKER_KEY,
    SETTINGS_KEY,
    TableRow,
    bundle_key,
    namespace_key,
    node_key,
    slot_key,
)
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch
from tests.vectors.hash_cases import key_with_checksum

EMPTY, WHOLE, WAITING, REFUSED = "empty", "whole", "waiting", "refused"
LATER_SCHEMA: Final = b"\xc3\x01later\x00v9" + b"\x02\x06abc"
"""A value whose fingerprint no schema has: what a later version of the software may write."""
MARKER: Final = MARKER_KEY.encode()
KEYS: Final = {0: "a", 1: "user-3", 2: "键", 3: "c"}
"""A key for each slot of four."""


def slot(slot_id: int, leader: str | None, *followers: str, since: int = 1) -> dict[str, TableRow | bytes | None]:
    """The row of a slot whose leader last changed in epoch ``since``."""
    return {slot_key(slot_id): Slot(slot_id, leader, followers, Epoch(since))}


def node(node_id: str, status: NodeStatus = NodeStatus.ACTIVE) -> dict[str, TableRow | bytes | None]:
    """The row of a node."""
    addresses = (Address("http", f"{node_id}.example", 8_080),)
    return {node_key(node_id): NodeRow(node_id, 1, NodeRole.DATA, status, addresses, "", 1, "1.0.0")}


def namespace(*owners: str | None) -> dict[str, TableRow | bytes | None]:
    """A namespace ``kv`` of two bundles."""
    lower, upper = (replace(each, owner=owner) for each, owner in zip(equal_bundles("kv", 2), owners, strict=True))
    return {
        namespace_key("kv"): Namespace("kv", 2),
        bundle_key(lower.bundle_id): lower,
        bundle_key(upper.bundle_id): upper,
    }


def first_table() -> dict[str, TableRow | bytes | None]:
    """Four slots and two nodes: n1 leads 0 and 1, n2 leads 2, nobody leads 3."""
    settings = TableSettings(4, 2, HashFunction.CRC32C, 2_500)
    slots = slot(0, "n1", "n2") | slot(1, "n1", "n2") | slot(2, "n2", "n1") | slot(3, None, since=0)
    return {SETTINGS_KEY: settings} | slots | node("n1") | node("n2")


def finds(key: str, slot_id: int, leader: str | None) -> Mapping[str, Any]:
    """A lookup of a key that finds its slot."""
    return {"key": key, "slot": slot_id, "leader": leader}


def fails(key: str, **where: str) -> Mapping[str, Any]:
    """A lookup that has to fail, because a row cannot be read."""
    return {**where, "key": key, "unroutable": True}


def finds_bundle(
    key: str, bundle: str, owner: str | None, *, is_served: bool = True, next_owner: str | None = None
) -> Mapping[str, Any]:
    """A lookup of a key in a namespace; ``is_served`` says whether the owner may serve it."""
    nodes = {"owner": owner, "serving": owner if is_served else None, "next_owner": next_owner}
    return {"namespace": bundle.rpartition("/")[0], "key": key, "bundle": bundle, **nodes}


LOW, HIGH = "kv/0x00000000_0x80000000", "kv/0x80000000_0xffffffff"
LOW_KEY, HIGH_KEY = "", "a"
LAST_KEY: Final = key_with_checksum(zlib.crc32, LAST_HASH)

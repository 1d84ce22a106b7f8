"""Samples of the subject ``bundles``: reports of load, its events, its rows and the candidates for split and shed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.bundles.events import (
    BundleEvent,
    BundleOrdersEnded,
    BundleOrdersGiven,
    BundlesAssigned,
    BundleSplit,
    NamespaceCreated,
    NamespaceDeleted,
    NamespaceEnding,
    TenantDeleted,
    TenantSet,
)
from controlplane.core.bundles.orders import (
    BY_NUMBER,
    BY_POSITIONS,
    BundleOrder,
    BundleOrderKind,
    EndedOrder,
    OrderOutcome,
)
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH, HashRange
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch
from tests.golden.samples.sample import BUNDLE_ID, KV, STARTED_MS, Sample

_UNKNOWN = ResourceUsage(-1.0, -1.0)
BUNDLES = (Bundle("kv", 0, 1 << 31, "node-1"), Bundle("kv", 1 << 31, 1 << 32, None))

LOAD_REPORTS = (
    Sample(
        "full",
        LoadReport(
            node_id="node-1",
            incarnation=STARTED_MS,
            sent_at_ms=STARTED_MS + 1,
            cpu=ResourceUsage(37.5, 400.0),
            memory=ResourceUsage(512.0, 2_048.0),
            direct_memory=ResourceUsage(0.0, 64.0),
            bandwidth_in=ResourceUsage(1_000.25, 1_000_000.0),
            bandwidth_out=_UNKNOWN,
            addresses=(KV, Address("admin", "10.0.0.7", 8_080)),
            version="1.0.0",
            started_at_ms=STARTED_MS,
            bundles=(BundleLoad(BUNDLE_ID, 10.5, 11.5, 1_050.0, 1_150.0, 3, 2, 1, 4_096),),
            slots=(SlotLoad(17, 10.5, 2_200.0, 4_096),),
        ),
    ),
    Sample(
        "plain",
        LoadReport("node-1", 1, 0, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, (), "", 0, bundles=(), slots=()),
    ),
)

EVENTS = (
    NamespaceCreated(Namespace("kv", 2), BUNDLES),
    BundlesAssigned(BUNDLES),
)

TENANT_EVENTS = (
    TenantSet(Tenant("acme", ("eu", "us"))),
    TenantSet(Tenant("idle", ())),
    TenantDeleted("idle"),
)

_HALF: Final = 1 << 31
_QUARTER: Final = 1 << 30
_OWNED: Final = Bundle(
    "kv", 0, _HALF, "node-1", OwnershipState.OWNED, owner_epoch=Epoch(300), state_epoch=Epoch(300), version=1
)
_LOWER_PART, _UPPER_PART = HashRange(0, _QUARTER).name, HashRange(_QUARTER, _HALF).name
_IN_STATES: Final[Mapping[str, Bundle]] = {
    "owned": _OWNED,
    "releasing": replace(
        _OWNED, state=OwnershipState.RELEASING, next_owner="node-2", state_epoch=Epoch(301), version=2
    ),
    "releasing for nobody": replace(_OWNED, state=OwnershipState.RELEASING, state_epoch=Epoch(301), version=2),
    "assigning": replace(
        _OWNED,
        owner=None,
        state=OwnershipState.ASSIGNING,
        next_owner="node-2",
        former_owner="node-1",
        state_epoch=Epoch(302),
        version=3,
    ),
    "owned after a handoff": replace(
        _OWNED, owner="node-2", former_owner="node-1", owner_epoch=Epoch(303), state_epoch=Epoch(303), version=4
    ),
    "owned by force": replace(
        _OWNED,
        owner="nœud-3",
        former_owner="node-1",
        owner_epoch=Epoch(304),
        state_epoch=Epoch(304),
        version=5,
        is_forced=True,
    ),
    "free": replace(
        _OWNED, owner=None, state=OwnershipState.FREE, former_owner="node-1", state_epoch=Epoch(302), version=3
    ),
    "splitting at given bounds": replace(
        _OWNED,
        state=OwnershipState.SPLITTING,
        state_epoch=Epoch(301),
        version=2,
        children=(_LOWER_PART, _UPPER_PART),
    ),
    "splitting by topics": replace(
        _OWNED,
        state=OwnershipState.SPLITTING,
        state_epoch=Epoch(301),
        version=2,
        split_algorithm="topic_count_equally_divide",
    ),
    "a part": Bundle(
        "kv",
        _QUARTER,
        _HALF,
        "node-1",
        OwnershipState.OWNED,
        owner_epoch=Epoch(300),
        state_epoch=Epoch(302),
        version=1,
        parent=_OWNED.hash_range.name,
    ),
    "greatest numbers": replace(
        _OWNED, lower=_HALF, upper=LAST_HASH, version=-(1 << 63), owner_epoch=Epoch(1 << 40), state_epoch=Epoch(1 << 40)
    ),
}
"""A row in every state, as a leader of feature level 3 writes it."""

_LATER_VALUES: Final[Mapping[str, Any]] = {
    "state": OwnershipState.FREE,
    "next_owner": "node-2",
    "former_owner": "node-2",
    "owner_epoch": Epoch(7),
    "state_epoch": Epoch(8),
    "version": 2,
    "is_forced": True,
    "children": (_LOWER_PART, _UPPER_PART),
    "split_algorithm": "range_equally_divide",
    "parent": HashRange(0, LAST_HASH).name,
}

HANDOFF_EVENTS: Final[tuple[BundleEvent, ...]] = (
    BundlesAssigned(tuple(_IN_STATES.values())),
    BundleSplit(
        _OWNED.bundle_id,
        (replace(_IN_STATES["a part"], lower=0, upper=_QUARTER), _IN_STATES["a part"]),
    ),
    BundleOrdersGiven(
        (
            BundleOrder(_OWNED.bundle_id, BundleOrderKind.TRANSFER, "node-2"),
            BundleOrder("kv/0x80000000_0xc0000000", BundleOrderKind.UNLOAD),
            BundleOrder("kv/0xc0000000_0xffffffff", BundleOrderKind.RELIEVE),
            BundleOrder("log/0x00000000_0x80000000", BundleOrderKind.SPLIT, None, BY_NUMBER, (2,)),
            BundleOrder(
                "log/0x80000000_0xffffffff", BundleOrderKind.SPLIT, None, BY_POSITIONS, (0xA0000000, 0xC0000000)
            ),
            BundleOrder("tx/0x00000000_0x80000000", BundleOrderKind.SPLIT, None, "flow_or_qps_equally_divide"),
            BundleOrder("tx/0x80000000_0xffffffff", BundleOrderKind.END),
        )
    ),
    BundleOrdersEnded(
        (
            EndedOrder(_OWNED.bundle_id, OrderOutcome.DONE, "node-2 owns it"),
            EndedOrder("tx/0x00000000_0x80000000", OrderOutcome.FAILED, "its topics have one hash: 键"),
        )
    ),
    NamespaceEnding("tx"),
    NamespaceDeleted("tx", ("tx/0x00000000_0x80000000", "tx/0x80000000_0xffffffff")),
    NamespaceDeleted("empty", ()),
    NamespaceCreated(Namespace("kv", 0, is_ending=True), ()),
    *(BundlesAssigned((replace(BUNDLES[0], **{name: value}),)) for name, value in _LATER_VALUES.items()),
)
"""The events of feature level 3; the last ones use one later field each."""

ROWS = (
    Sample("plain", BUNDLES[0]),
    Sample("without an owner", BUNDLES[1]),
    *(Sample(name, bundle) for name, bundle in _IN_STATES.items()),
    Sample("plain", Namespace("kv", 4)),
    Sample("ending", Namespace("kv", 4, is_ending=True)),
)

CANDIDATES = (
    Sample("split", Candidate("c1", "split", BUNDLE_ID, "node-1", "pulsar-modular-split", {"topics": "3"}, 1, 2)),
    Sample("shed", Candidate("c2", "shed", BUNDLE_ID, "node-1", "pulsar-threshold", {}, 1, 2)),
)

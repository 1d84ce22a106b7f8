"""Samples of the subject ``membership``: what nodes and controllers send, its events and the rows of nodes."""

from controlplane.core.bundles.reports import BundleStatus
from controlplane.core.membership.events import (
    EvictionsFrozen,
    EvictionsResumed,
    FencingCause,
    NodeAdmitted,
    NodeDraining,
    NodeFenced,
    NodeOrdered,
    NodeRemoved,
    NodeUndrained,
)
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.slots.reports import SlotSettings, SlotStatus
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from tests.golden.samples.sample import BUNDLE_ID, KV, STARTED_MS, Sample

_FULL_HEARTBEAT = Heartbeat(
    node_id="nœud-1",
    incarnation=STARTED_MS,
    sent_at_ms=STARTED_MS + 1,
    table_epoch=Epoch(300),
    role=NodeRole.SESSION,
    slot_settings=SlotSettings(256, 2, "crc32c"),
    slot_statuses=(
        SlotStatus(0, 7, True, ReplicaStatus.HEALTHY, 0),
        SlotStatus(255, 8, False, ReplicaStatus.MIGRATING, STARTED_MS),
        SlotStatus(17, 9, False, ReplicaStatus.UNHEALTHY, STARTED_MS),
    ),
    bundle_statuses=(BundleStatus(BUNDLE_ID, ReplicaStatus.HEALTHY),),
)

HEARTBEATS = (
    Sample("plain", Heartbeat("node-1", STARTED_MS, STARTED_MS + 1, Epoch(0), NodeRole.DATA)),
    Sample("full", _FULL_HEARTBEAT),
    Sample("plain", Tick("controller-1", STARTED_MS)),
)
JOINS_AND_LEAVES = (
    Sample("full", NodeJoined("node-1", STARTED_MS, NodeRole.DATA, (KV,), "zone-a", 2, 100, "1.0.0", STARTED_MS)),
    Sample("plain", NodeJoined("node-2", 1, NodeRole.SESSION, (), "", 1, 0, "", 0)),
    Sample("plain", NodeLeaving("node-1", STARTED_MS, "SIGTERM")),
    Sample("plain", NodeLeft("node-1", STARTED_MS, "")),
)

NODE_EVENTS = (
    NodeAdmitted(
        Node(
            node_id="node-1",
            incarnation=STARTED_MS,
            role=NodeRole.DATA,
            status=NodeStatus.ACTIVE,
            addresses=(KV,),
            zone="zone-a",
            weight=2,
            capacity=100,
            version="1.0.0",
            admitted_at_offset=12,
            changed_at_ms=STARTED_MS + 5,
        )
    ),
    NodeDraining("node-2", STARTED_MS, STARTED_MS + 5),
    NodeDraining("node-8", STARTED_MS, STARTED_MS + 5, leaving=False),
    NodeUndrained("node-8", STARTED_MS, STARTED_MS + 5),
    NodeFenced("node-3", STARTED_MS, FencingCause.SILENCE, 2_600, STARTED_MS + 5),
    NodeFenced("node-4", STARTED_MS, FencingCause.SUPERSEDED, 0, STARTED_MS + 5),
    NodeRemoved("node-5", STARTED_MS, STARTED_MS + 5),
    NodeOrdered("node-1", StandingOrder(excluded=True, weight=3, zone="zone-b")),
    NodeOrdered("node-2", StandingOrder()),
)
EVICTION_EVENTS = (
    EvictionsFrozen(("node-6", "node-7"), 1),
    EvictionsResumed("an operator said so"),
)

ROWS = (
    Sample(
        "plain",
        NodeRow("node-1", STARTED_MS, NodeRole.DATA, NodeStatus.ACTIVE, (KV,), zone="a", weight=2, version="1.0.0"),
    ),
    Sample("fenced", NodeRow("node-2", 1, NodeRole.SESSION, NodeStatus.FENCED, (), zone="", weight=1, version="")),
)

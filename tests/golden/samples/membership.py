"""Samples of the subject ``membership``: what nodes and controllers send, its events and the rows of nodes."""

from dataclasses import replace

from controlplane.core.bundles.reports import BundleStatus, BundleStep, BundleStepReport
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
from controlplane.core.slots.reports import ReleasedSlots, SlotGroup, SlotSettings, SlotStatus
from controlplane.core.values.identifiers import Epoch, Seq
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

_GROUPED_HEARTBEAT = _FULL_HEARTBEAT._replace(
    slot_statuses=(),
    slot_groups=(
        SlotGroup(ReplicaStatus.HEALTHY, STARTED_MS, (0, 1, 15, 2, 100, 30)),
        SlotGroup(ReplicaStatus.MIGRATING, 0, (18, 1)),
    ),
)

_STEPPING_HEARTBEAT = Heartbeat(
    "node-1",
    STARTED_MS,
    STARTED_MS + 1,
    Epoch(301),
    NodeRole.DATA,
    process_id="5d1f0c7a",
    bundle_steps=(
        BundleStepReport(BUNDLE_ID, 2, BundleStep.RELEASED),
        BundleStepReport("kv/0x40000000_0x80000000", -(1 << 63), BundleStep.OPENED),
        BundleStepReport("kv/0x80000000_0xc0000000", 7, BundleStep.DIVIDED),
        BundleStepReport("kv/0xc0000000_0xffffffff", 8, BundleStep.DIVIDED, (0xD0000000, 0xE0000000)),
    ),
    released_slots=(ReleasedSlots(Epoch(299), (3, 1, 2, 40)), ReleasedSlots(Epoch(301), (0, 1))),
)

HEARTBEATS = (
    Sample("plain", Heartbeat("node-1", STARTED_MS, STARTED_MS + 1, Epoch(0), NodeRole.DATA)),
    Sample("full", _FULL_HEARTBEAT),
    Sample("in groups", _GROUPED_HEARTBEAT._replace(process_id="5d1f0c7a")),
    Sample("with steps of handoffs", _STEPPING_HEARTBEAT),
    Sample("plain", Tick("controller-1", STARTED_MS)),
    Sample("naming what its sender has read", Tick("controller-1", STARTED_MS, Seq(70_000), Epoch(300))),
)
JOINS_AND_LEAVES = (
    Sample("full", NodeJoined("node-1", STARTED_MS, NodeRole.DATA, (KV,), "zone-a", 2, 100, "1.0.0", STARTED_MS)),
    Sample("plain", NodeJoined("node-2", 1, NodeRole.SESSION, (), "", 1, 0, "", 0)),
    Sample("plain", NodeLeaving("node-1", STARTED_MS, "SIGTERM")),
    Sample("plain", NodeLeft("node-1", STARTED_MS, "")),
)

_JOINED_PROCESS = NodeJoined("node-1", 7, NodeRole.DATA, (KV,), "", 1, 0, "1.0.0", STARTED_MS, "5d1f0c7a")
LATER_JOINS_AND_LEAVES = (
    Sample("of a process", _JOINED_PROCESS),
    Sample("that hands off", replace(_JOINED_PROCESS, hands_off=True)),
    Sample("of a process", NodeLeaving("node-1", 7, "SIGTERM", "5d1f0c7a")),
    Sample("of a process", NodeLeft("node-1", 7, "", "5d1f0c7a")),
)
ADMITTED_PROCESS = NodeAdmitted(
    Node("node-1", 7, NodeRole.DATA, NodeStatus.ACTIVE, (KV,), "", 1, 0, "1.0.0", 12, STARTED_MS, False, "5d1f0c7a")
)
_ADMITTED = Node(
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
HANDOFF_EVENTS = (
    NodeAdmitted(replace(_ADMITTED, hands_off=True)),
    NodeAdmitted(replace(_ADMITTED, replaced_epoch=Epoch(299))),
    NodeAdmitted(replace(_ADMITTED, process_id="5d1f0c7a", hands_off=True, replaced_epoch=Epoch(299))),
)

NODE_EVENTS = (
    NodeAdmitted(_ADMITTED),
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
    Sample(
        "of a process",
        NodeRow("node-1", 7, NodeRole.DATA, NodeStatus.ACTIVE, (KV,), "a", 2, "1.0.0", process_id="5d1f0c7a"),
    ),
    Sample("fenced", NodeRow("node-2", 1, NodeRole.SESSION, NodeStatus.FENCED, (), zone="", weight=1, version="")),
)

"""The values whose bytes are frozen, and the damaged records whose refusal is.

Each record has a plain case and one that fills every field and every branch. Add cases; a case of a released schema
version never changes.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import DEFAULT_MAX_PART_BYTES, encode_decision
from controlplane.codec.framing import default_framing
from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.bundles.events import BundlesAssigned, NamespaceCreated
from controlplane.core.bundles.reports import BundleLoad, BundleStatus, LoadReport, ResourceUsage
from controlplane.core.cluster.events import (
    ClusterCreated,
    FeatureLevelRaised,
    FormerSilenceLimitEnded,
    PolicyChanged,
    TermOpened,
)
from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit, HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
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
from controlplane.core.routing.rows import EpochMarker
from controlplane.core.slots.certificate import Certificate, LoadStage, ReadyHeirs
from controlplane.core.slots.events import (
    MemoryEntry,
    PlanDropped,
    PlanMade,
    PolicyRemembered,
    ReconciliationPaused,
    ReconciliationResumed,
    ReplicasLeft,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure
from controlplane.core.slots.reports import SlotLoad, SlotSettings, SlotStatus
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.core.values.replica_status import ReplicaStatus

_STARTED_MS = 1_760_000_000_000
_KV = Address("kv", "10.0.0.7", 4_000)
_UNKNOWN = ResourceUsage(-1.0, -1.0)
_BUNDLE_ID = "kv/0x00000000_0x40000000"
_SLOTS = tuple(Slot(number, f"node-{number % 3}", (f"node-{(number + 1) % 3}",), Epoch(7)) for number in range(40))
_BUNDLES = (Bundle("kv", 0, 1 << 31, "node-1"), Bundle("kv", 1 << 31, 1 << 32, None))
_POLICY = ClusterPolicy(hash_function=HashFunction.MD5, protected_ratio=0.25)

_EVERYTHING = Decision(
    seq=Seq(7),
    term=Term(3),
    epoch=Epoch(4),
    log_id="0f3c9a",
    controller_id="controller-1",
    feature_level=1,
    decided_at_ms=_STARTED_MS + 5,
    causes=tuple(Cause(kind, kind.value, "membership[0]@17") for kind in CauseKind),
    events=(
        ClusterCreated("0f3c9a", ClusterPolicy()),
        TermOpened(Term(3), "controller-1", "1.0.0", 1, _POLICY),
        NodeAdmitted(
            Node(
                node_id="node-1",
                incarnation=_STARTED_MS,
                role=NodeRole.DATA,
                status=NodeStatus.ACTIVE,
                addresses=(_KV,),
                zone="zone-a",
                weight=2,
                capacity=100,
                version="1.0.0",
                admitted_at_offset=12,
                changed_at_ms=_STARTED_MS + 5,
            )
        ),
        NodeDraining("node-2", _STARTED_MS, _STARTED_MS + 5),
        NodeDraining("node-8", _STARTED_MS, _STARTED_MS + 5, leaving=False),
        NodeUndrained("node-8", _STARTED_MS, _STARTED_MS + 5),
        NodeFenced("node-3", _STARTED_MS, FencingCause.SILENCE, 2_600, _STARTED_MS + 5),
        NodeFenced("node-4", _STARTED_MS, FencingCause.SUPERSEDED, 0, _STARTED_MS + 5),
        NodeRemoved("node-5", _STARTED_MS, _STARTED_MS + 5),
        NodeOrdered("node-1", StandingOrder(excluded=True, weight=3, zone="zone-b")),
        NodeOrdered("node-2", StandingOrder()),
        SlotsPinned((Pin(3, "node-1", leads=True), Pin(4, "node-1"))),
        SlotsUnpinned((Pin(4, "node-1"),)),
        SlotsExcluded((Exclusion(5, "node-1"), Exclusion(6, "node-1"))),
        SlotsIncluded((Exclusion(6, "node-1"),)),
        ReconciliationPaused("a disk is being replaced"),
        ReconciliationResumed(""),
        PolicyChanged(_POLICY, FormerSilenceLimit(5_000, 17)),
        PolicyChanged(ClusterPolicy(), None),
        FormerSilenceLimitEnded(2_500),
        SlotsAssigned((*_SLOTS, Slot(40, None, (), Epoch(4)))),
        PolicyRemembered((MemoryEntry("slot/17", "[41]"), MemoryEntry("slot/18", None), MemoryEntry("table", "42"))),
        SlotsSplit((Slot(41, "node-1", ("node-2",), Epoch(4)), Slot(42, None, (), Epoch(4)))),
        PlanDropped(Seq(5), "a new plan takes its place"),
        PlanMade(Seq(7), _STARTED_MS + 5, _STARTED_MS + 9, (Slot(43, "node-2", ("node-1",), Epoch(4)),)),
        ReplicasLeft(_STARTED_MS + 5, (Departure(44, "node-2", _STARTED_MS, _STARTED_MS + 5),)),
        NamespaceCreated(Namespace("kv", 2), _BUNDLES),
        BundlesAssigned(_BUNDLES),
        EvictionsFrozen(("node-6", "node-7"), 1),
        EvictionsResumed("an operator said so"),
        IntentAnswered("intent-1", "create_namespace", "ada", IntentOutcome.DONE, "created"),
        IntentAnswered("intent-2", "fly", "ada", IntentOutcome.REFUSED, "unknown kind"),
        IntentAnswered("intent-3", "drain_node", "ada", IntentOutcome.SUPERSEDED, "by intent-4"),
    ),
    positions={f"heartbeats[{number}]": 100 + number for number in range(12)} | {"membership[0]": 18},
    policy_fingerprint="00112233445566aa",
    certificate=Certificate(
        "minimal",
        4,
        4,
        2,
        2,
        {"node-1": 0, "node-2": -3},
        {"node-1": 1},
        (11, 12),
        (ReadyHeirs(13, ("node-2",)),),
        {"node-1": "164/3", "node-2": "0"},
        {"node-1": "12"},
        -1,
        3,
        ("3 slots have 1 of 2 replicas: 1 nodes may hold no more of them",),
        LoadStage("3/2", "21/20", 4, 3, 2),
        _SLOTS,
    ),
    previous_digest="ab" * 32,
    state_digest="cd" * 32,
    moves_carried_out=5,
    leader_changes_carried_out=3,
    moves_left=2,
)
_RIGHTS = replace(
    _EVERYTHING,
    feature_level=2,
    events=(
        PolicyChanged(replace(_POLICY, intent_rights={"ops-*": "drain_node undrain_node", "ada": "*"}), None),
        IntentAnswered("intent-5", "drain_node", "bob", IntentOutcome.REFUSED, "'bob' may not ask for drain_node"),
    ),
    certificate=None,
)
_LEVELS = replace(
    _EVERYTHING,
    feature_level=2,
    events=(
        TermOpened(
            Term(3), "controller-1", "1.0.0", 1, _POLICY, {"heartbeats[0]": 5, "intents[0]": 0, "membership[0]": 17}
        ),
        FeatureLevelRaised(2),
    ),
    certificate=None,
)
_POSITIONS_ONLY = Decision(
    seq=Seq(8),
    term=Term(3),
    epoch=Epoch(4),
    log_id="0f3c9a",
    controller_id="controller-1",
    feature_level=1,
    decided_at_ms=_STARTED_MS + 600_000,
    causes=(Cause(CauseKind.POSITIONS, "controller-1", ""),),
    events=(),
    positions={"membership[0]": 19},
    policy_fingerprint="00112233445566aa",
    certificate=None,
    previous_digest="ef" * 32,
    state_digest="cd" * 32,
)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """A value whose bytes are frozen under a name that is unique for its record."""

    name: str
    value: object
    max_part_bytes: int = DEFAULT_MAX_PART_BYTES


_FULL_HEARTBEAT = Heartbeat(
    node_id="nœud-1",
    incarnation=_STARTED_MS,
    sent_at_ms=_STARTED_MS + 1,
    table_epoch=Epoch(300),
    role=NodeRole.SESSION,
    slot_settings=SlotSettings(256, 2, "crc32c"),
    slot_statuses=(
        SlotStatus(0, 7, True, ReplicaStatus.HEALTHY, 0),
        SlotStatus(255, 8, False, ReplicaStatus.MIGRATING, _STARTED_MS),
        SlotStatus(17, 9, False, ReplicaStatus.UNHEALTHY, _STARTED_MS),
    ),
    bundle_statuses=(BundleStatus(_BUNDLE_ID, ReplicaStatus.HEALTHY),),
)

_INTENTS: dict[str, dict[str, str]] = {
    "create_namespace": {"namespace": "kv"},
    "override_self_preservation": {},
    "drain_node": {"node": "n1"},
    "undrain_node": {"node": "n1"},
    "exclude_node": {"node": "n1"},
    "include_node": {"node": "n1"},
    "set_node": {"node": "n1", "weight": "3", "zone": "zone-b"},
    "reset_node": {"node": "n1"},
    "pin_slots": {"slots": "3,7-9", "node": "n1", "leads": "true"},
    "unpin_slots": {"slots": "3,7-9", "node": "n1"},
    "exclude_slots": {"slots": "3,7-9", "node": "n1"},
    "include_slots": {"slots": "3,7-9", "node": "n1"},
    "refresh_table": {},
    "pause_reconciliation": {},
    "resume_reconciliation": {},
    "change_policy": {"tolerance_percent": "5", "zone_rule": "hard"},
    "change_policy to the contrary": {"tolerance_percent": "6", "zone_rule": "ignored"},
    "raise_feature_level": {"level": "2", "upgraded": "c2 c3"},
    "resign_leader": {"controller": "c1"},
    "take_snapshot": {},
}
"""By the kind's name: an intent of every kind, with all the arguments that its operation declares."""

SAMPLES: tuple[Sample, ...] = (
    Sample("plain", Heartbeat("node-1", _STARTED_MS, _STARTED_MS + 1, Epoch(0), NodeRole.DATA)),
    Sample("full", _FULL_HEARTBEAT),
    Sample("plain", Tick("controller-1", _STARTED_MS)),
    Sample(
        "full",
        LoadReport(
            node_id="node-1",
            incarnation=_STARTED_MS,
            sent_at_ms=_STARTED_MS + 1,
            cpu=ResourceUsage(37.5, 400.0),
            memory=ResourceUsage(512.0, 2_048.0),
            direct_memory=ResourceUsage(0.0, 64.0),
            bandwidth_in=ResourceUsage(1_000.25, 1_000_000.0),
            bandwidth_out=_UNKNOWN,
            addresses=(_KV, Address("admin", "10.0.0.7", 8_080)),
            version="1.0.0",
            started_at_ms=_STARTED_MS,
            bundles=(BundleLoad(_BUNDLE_ID, 10.5, 11.5, 1_050.0, 1_150.0, 3, 2, 1, 4_096),),
            slots=(SlotLoad(17, 10.5, 2_200.0, 4_096),),
        ),
    ),
    Sample(
        "plain",
        LoadReport("node-1", 1, 0, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, (), "", 0, bundles=(), slots=()),
    ),
    Sample("full", NodeJoined("node-1", _STARTED_MS, NodeRole.DATA, (_KV,), "zone-a", 2, 100, "1.0.0", _STARTED_MS)),
    Sample("plain", NodeJoined("node-2", 1, NodeRole.SESSION, (), "", 1, 0, "", 0)),
    Sample("plain", NodeLeaving("node-1", _STARTED_MS, "SIGTERM")),
    Sample("plain", NodeLeft("node-1", _STARTED_MS, "")),
    Sample("full", Intent("intent-1", "create_namespace", "ada", {"namespace": "kv", "comment": "für alle"})),
    Sample("plain", Intent("intent-2", "override_self_preservation", "", {})),
    *(Sample(name, Intent(f"intent-{name}", name.split()[0], "ada", given)) for name, given in _INTENTS.items()),
    Sample("everything", _EVERYTHING),
    Sample("everything in parts", _EVERYTHING, max_part_bytes=700),
    Sample("rights", _RIGHTS),
    Sample("levels", _LEVELS),
    Sample("positions only", _POSITIONS_ONLY),
    Sample("plain", TableSettings(256, 2, HashFunction.CRC32C, 2_500)),
    Sample("plain", Slot(17, "node-1", ("node-2", "node-3"), Epoch(7))),
    Sample("without a leader", Slot(0, None, (), Epoch(0))),
    Sample(
        "plain",
        NodeRow("node-1", _STARTED_MS, NodeRole.DATA, NodeStatus.ACTIVE, (_KV,), zone="a", weight=2, version="1.0.0"),
    ),
    Sample("fenced", NodeRow("node-2", 1, NodeRole.SESSION, NodeStatus.FENCED, (), zone="", weight=1, version="")),
    Sample("plain", _BUNDLES[0]),
    Sample("without an owner", _BUNDLES[1]),
    Sample("plain", Namespace("kv", 4)),
    Sample("plain", EpochMarker(Term(3), Epoch(4), Seq(7), "0f3c9a", 262, "node_expired", "00ff00ff00ff00ff")),
    Sample("split", Candidate("c1", "split", _BUNDLE_ID, "node-1", "pulsar-modular-split", {"topics": "3"}, 1, 2)),
    Sample("shed", Candidate("c2", "shed", _BUNDLE_ID, "node-1", "pulsar-threshold", {}, 1, 2)),
    Sample(
        "plain",
        SnapshotPart(
            snapshot_id="0000000000000000007-0000000003-1",
            part=0,
            part_count=2,
            log_id="0f3c9a",
            term=Term(3),
            seq=Seq(7),
            epoch=Epoch(4),
            next_decision_offset=31,
            state_digest="cd" * 32,
            body=b'{"nodes":{',
            last_decision_offset=29,
            decided_at_ms=_STARTED_MS,
            feature_level=1,
            code_version="1.0.0",
            body_digest="ab" * 32,
        ),
    ),
    Sample("plain", DeadLetter("negative", "sent_at_ms is -1", "heartbeats", 3, 17, 1, "controller-1", b"\x00\xff", 2)),
)


@dataclass(frozen=True, slots=True)
class Damaged:
    """An input record that is refused, and why."""

    name: str
    topic: str
    key: str
    value: bytes
    reason: str


def sample_of(kind: type[T], name: str) -> T:
    """The value of the sample of that name, which is of this class."""
    (found,) = (each.value for each in SAMPLES if each.name == name and isinstance(each.value, kind))
    return found


def damaged() -> tuple[Damaged, ...]:
    """Records that are refused, made from the samples."""
    heartbeat = _encode(Heartbeat("node-1", 5, 6, Epoch(7), NodeRole.DATA))
    report = next(sample.value for sample in SAMPLES if sample.name == "full" and isinstance(sample.value, LoadReport))
    beyond = heartbeat[:2] + bytes(8) + heartbeat[10:]
    nan = replace(report, cpu=ResourceUsage(float("nan"), 400.0))
    rate = report.bundles[0]._replace(message_rate_in_per_s=-1.0)
    wrong_slot = SlotStatus(1 << 20, 1, True, ReplicaStatus.HEALTHY, 0)
    return (
        Damaged("no Avro", "heartbeats", "node-1", b'{"node_id": "node-1"}', "not_avro_framed"),
        Damaged("empty", "heartbeats", "node-1", b"", "not_avro_framed"),
        Damaged("header cut", "heartbeats", "node-1", heartbeat[:7], "truncated"),
        Damaged("body cut", "heartbeats", "node-1", heartbeat[:-1], "truncated"),
        Damaged("body too long", "heartbeats", "node-1", heartbeat + b"\x00", "trailing_bytes"),
        Damaged("unknown schema", "heartbeats", "node-1", beyond, "unknown_fingerprint"),
        Damaged("registry unknown", "heartbeats", "node-1", b"\x00\x00\x00\x00\x2a\x02\x78", "unknown_schema_id"),
        Damaged("broken text", "heartbeats", "node-1", heartbeat.replace(b"node-1", b"node-\xff"), "undecodable"),
        Damaged("a decision", "heartbeats", "7", encode_decision(_POSITIONS_ONLY)[0], "wrong_record_type"),
        Damaged("another key", "heartbeats", "node-2", heartbeat, "key_mismatch"),
        Damaged("no name", "heartbeats", "", _encode(Heartbeat("", 5, 6, Epoch(7), NodeRole.DATA)), "empty_node_id"),
        Damaged(
            "slot out of range",
            "heartbeats",
            "node-1",
            _encode(Heartbeat("node-1", 5, 6, Epoch(7), NodeRole.DATA, slot_statuses=(wrong_slot,))),
            "slot_out_of_range",
        ),
        Damaged("not a number", "load-reports", "node-1", _encode(nan), "not_a_number"),
        Damaged(
            "negative rate",
            "load-reports",
            "node-1",
            _encode(replace(report, bundles=(rate,))),
            "negative",
        ),
        Damaged(
            "weightless",
            "membership",
            "node-1",
            _encode(NodeJoined("node-1", 5, NodeRole.DATA, (), "", 0, 0, "", 0)),
            "invalid_weight",
        ),
    )


def _encode(value: object) -> bytes:
    return default_framing().encode(type(value).__name__, to_datum(value))

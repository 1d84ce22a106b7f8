"""The raw inputs: what nodes, controllers and operators append to the input topics.

These are claims, not facts: each is judged (``observations``, ``decide``) before it means anything. The codec has
checked types and ranges; whether a node is known or an incarnation is current is decided later. Wall-clock fields are
carried for people and never trusted.

The records of the intake path are named tuples because they are built tens of thousands of times a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from controlplane.core.identifiers import (
    ControllerId,
    Coordinates,
    Epoch,
    Incarnation,
    IntentId,
    NodeId,
    SlotId,
)


class NodeRole(Enum):
    """What a member is there for (SOFARegistry: data server, session server)."""

    DATA = "data"
    """Owns slots and bundles."""
    SESSION = "session"
    """Uses the table and owns nothing; its epoch lag is shown."""


class ReplicaStatus(Enum):
    """What a node says of one replica it holds (SOFARegistry's LeaderStatus, and its follower counterpart)."""

    HEALTHY = "healthy"
    """It holds all the data: a slot leader serves, a follower is in sync."""
    MIGRATING = "migrating"
    """It is still fetching."""
    UNHEALTHY = "unhealthy"
    """It cannot serve or follow."""


class SlotStatus(NamedTuple):
    """One slot as its holder sees it (spec: SOFARegistry's heartbeat carries one for each of the node's slots).

    Attributes:
        slot_id: which slot.
        leader_epoch: the slot leader epoch that the node works under.
        leads: True as slot leader, False as follower.
        status: see :class:`ReplicaStatus`.
        last_sync_ms: wall clock of a follower's last successful sync with the leader; 0 for a leader or for "never".
    """

    slot_id: SlotId
    leader_epoch: int
    leads: bool
    status: ReplicaStatus
    last_sync_ms: int


class SlotReport(NamedTuple):
    """What a node last said of its slots.

    Attributes:
        statuses: one per slot that it holds.
        table_epoch: the epoch of the table that it worked with.
        sent_at_ms: its wall clock.
        age_ms: log time since.
    """

    statuses: tuple[SlotStatus, ...]
    table_epoch: Epoch
    sent_at_ms: int
    age_ms: int


class BundleStatus(NamedTuple):
    """One bundle as its owner sees it."""

    bundle_id: str
    status: ReplicaStatus


class SlotSettings(NamedTuple):
    """The slot settings that a node was started with; a mismatch with the table's is shown, not guessed away."""

    slot_count: int
    replica_count: int
    hash_function: str


class Heartbeat(NamedTuple):
    """A node is alive. Topic ``heartbeats``, key ``node_id``.

    Attributes:
        node_id: who.
        incarnation: which process life of it.
        sent_at_ms: the node's wall clock.
        table_epoch: the epoch of the table it works with; 0 before the first.
        role: data or session.
        slot_settings: what it was started with, if it says.
        slot_statuses: one per slot that it holds.
        bundle_statuses: one per bundle that it owns.
    """

    node_id: NodeId
    incarnation: Incarnation
    sent_at_ms: int
    table_epoch: Epoch
    role: NodeRole
    slot_settings: SlotSettings | None = None
    slot_statuses: tuple[SlotStatus, ...] = ()
    bundle_statuses: tuple[BundleStatus, ...] = ()


class Tick(NamedTuple):
    """A controller's mark of time. Topic ``heartbeats``, one to each partition; its append time is "now"."""

    controller_id: ControllerId
    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class Address:
    """One way to reach a node, for example name ``kv``, host ``10.0.0.7``, port 4000."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A node asks to be admitted. Topic ``membership``, key ``node_id``.

    Attributes:
        addresses: where it serves, by name.
        zone: its failure domain; empty if there is none.
        weight: share of slots relative to other nodes, at least 1.
        capacity: the most replicas it may hold; 0 means no limit.
        version: the node software's version, for people.
        started_at_ms: its wall clock at process start.
    """

    node_id: NodeId
    incarnation: Incarnation
    role: NodeRole
    addresses: tuple[Address, ...]
    zone: str
    weight: int
    capacity: int
    version: str
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class NodeLeaving:
    """A node wants to go and asks to be relieved of what it holds. Topic ``membership``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """A node has gone: it serves nothing any more. Topic ``membership``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str


REASON: Final = "reason"
"""The argument that every intent may have: why it is asked, for people."""
TRUE: Final = "true"
"""How an intent's argument says yes."""


class IntentKind(Enum):
    """What an operator may ask for at this feature level."""

    CREATE_NAMESPACE = "create_namespace"
    """Arguments: ``namespace``."""
    OVERRIDE_SELF_PRESERVATION = "override_self_preservation"
    """Fence the silent nodes although evictions are frozen. No arguments."""
    DRAIN_NODE = "drain_node"
    """Relieve a node of what it holds. Arguments: ``node``."""
    UNDRAIN_NODE = "undrain_node"
    """Take an operator's drain back. Arguments: ``node``."""
    EXCLUDE_NODE = "exclude_node"
    """Give whoever bears a name nothing, also over restarts. Arguments: ``node``."""
    INCLUDE_NODE = "include_node"
    """Take an exclusion back. Arguments: ``node``."""
    SET_NODE = "set_node"
    """Let a node count otherwise than it says. Arguments: ``node``, ``weight`` or ``zone`` or both."""
    RESET_NODE = "reset_node"
    """Let a node's own weight and zone count again. Arguments: ``node``."""
    PIN_SLOTS = "pin_slots"
    """Keep replicas on a node. Arguments: ``slots`` as in ``3,7-9``, ``node``, ``leads`` (``true``)."""
    UNPIN_SLOTS = "unpin_slots"
    """Take pins back. Arguments: ``slots``, ``node``."""
    EXCLUDE_SLOTS = "exclude_slots"
    """Forbid a node to hold slots. Arguments: ``slots``, ``node``."""
    INCLUDE_SLOTS = "include_slots"
    """Take such exclusions back. Arguments: ``slots``, ``node``."""
    REFRESH_TABLE = "refresh_table"
    """Plan at once and write every row of the routing table again. No arguments."""
    PAUSE_RECONCILIATION = "pause_reconciliation"
    """Move no slot; only take the dead out. No arguments."""
    RESUME_RECONCILIATION = "resume_reconciliation"
    """Take a pause back. No arguments."""
    CHANGE_POLICY = "change_policy"
    """Change the cluster's policy. Arguments: fields of the policy by name, with the new values."""
    RAISE_FEATURE_LEVEL = "raise_feature_level"
    """Let the log hold what older controllers cannot read. Arguments: ``level``, ``upgraded`` (controllers' names)."""
    RESIGN_LEADER = "resign_leader"
    """Hand leading over to another controller at once. Arguments: ``controller``, the one that is to resign."""
    TAKE_SNAPSHOT = "take_snapshot"
    """Write a snapshot of the state now. No arguments."""


@dataclass(frozen=True, slots=True)
class Intent:
    """An operator asks for something; the answer is in the log. Topic ``intents``, key ``intent_id``.

    Attributes:
        intent_id: unique; the same id never counts twice.
        kind: the name of what is asked; one that this feature level does not know is answered "refused".
        principal: who asks.
        arguments: by name, as the kind defines them; every kind takes ``reason``, which the answer repeats.
    """

    intent_id: IntentId
    kind: str
    principal: str
    arguments: Mapping[str, str] = field(default_factory=dict)


class ResourceUsage(NamedTuple):
    """Use of one limited resource in its own unit; (-1, -1) means unknown (Pulsar's ResourceUsage)."""

    usage: float
    limit: float


class BundleLoad(NamedTuple):
    """Load of one bundle since the last report (Pulsar's NamespaceBundleStats)."""

    bundle_id: str
    message_rate_in_per_s: float
    message_rate_out_per_s: float
    throughput_in_bytes_per_s: float
    throughput_out_bytes_per_s: float
    topic_count: int
    producer_count: int
    consumer_count: int
    cache_size_bytes: int


class SlotLoad(NamedTuple):
    """Load of one slot since the last report."""

    slot_id: SlotId
    request_rate_per_s: float
    throughput_bytes_per_s: float
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a node's work costs. Topic ``load-reports``, key ``node_id`` (Pulsar's LocalBrokerData).

    Attributes:
        cpu: percent of one core, limit 100 x cores.
        memory: MiB of heap or resident memory.
        direct_memory: MiB outside the heap.
        bandwidth_in: Kbit/s.
        bandwidth_out: Kbit/s.
        addresses: where the node serves, by name.
        version: the node software's version.
        started_at_ms: the node's wall clock at process start.
        bundles: one per bundle that it owns.
        slots: one per slot that it leads, where it measures them.
    """

    node_id: NodeId
    incarnation: Incarnation
    sent_at_ms: int
    cpu: ResourceUsage
    memory: ResourceUsage
    direct_memory: ResourceUsage
    bandwidth_in: ResourceUsage
    bandwidth_out: ResourceUsage
    addresses: tuple[Address, ...]
    version: str
    started_at_ms: int
    bundles: tuple[BundleLoad, ...]
    slots: tuple[SlotLoad, ...]


InputPayload: TypeAlias = Heartbeat | Tick | LoadReport | NodeJoined | NodeLeaving | NodeLeft | Intent


class InputRecord(NamedTuple):
    """A decoded input with its place in the log and its bytes, which a dead letter needs.

    Attributes:
        coordinates: topic (without prefix), partition, offset, append time.
        payload: the decoded record, or None where the bytes could not be used and a dead letter was written.
        raw: the bytes as they stood in the log.
    """

    coordinates: Coordinates
    payload: InputPayload | None
    raw: bytes


class Refusal(NamedTuple):
    """An input that is refused: it becomes a dead letter and has no other effect."""

    coordinates: Coordinates
    reason: str
    detail: str
    raw: bytes

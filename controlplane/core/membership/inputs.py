"""The records that nodes and controllers append to ``heartbeats`` and ``membership``.

They are claims and are validated before they have an effect. The codec checks types and ranges. Whether a node is known
and its incarnation current is decided later. Wall-clock fields are for display only; no decision depends on them.

Heartbeats and ticks are named tuples because tens of thousands of them are built per second.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from controlplane.core.bundles.reports import BundleStatus, BundleStepReport
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.membership.node import PROCESSES_FROM_LEVEL, NodeRole
from controlplane.core.slots.reports import ReleasedSlots, SlotGroup, SlotSettings, SlotStatus
from controlplane.core.values.addresses import Address
from controlplane.core.values.canonical import later
from controlplane.core.values.identifiers import ControllerId, Epoch, Incarnation, NodeId, ProcessId, Seq


class Heartbeat(NamedTuple):
    """A node is alive. Topic ``heartbeats``, key ``node_id``.

    Attributes:
        node_id: the node's name.
        incarnation: its process life.
        sent_at_ms: the node's wall clock at sending.
        table_epoch: epoch of the node's table in use; 0 before the first.
        role: the node's role.
        slot_settings: the slot settings that the node was started with; None if it does not report them.
        slot_statuses: one per slot that it holds, below feature level 3.
        bundle_statuses: one per bundle that it owns.
        slot_groups: every slot that it holds, each in one group, from feature level 3 on.
        process_id: the process, likewise; tells processes apart that have the same incarnation.
        bundle_steps: what it has done for bundles in flight, one for each, likewise.
        released_slots: the slots that it has released, until their rows change, likewise.
    """

    node_id: NodeId
    incarnation: Incarnation
    sent_at_ms: int
    table_epoch: Epoch
    role: NodeRole
    slot_settings: SlotSettings | None = None
    slot_statuses: tuple[SlotStatus, ...] = ()
    bundle_statuses: tuple[BundleStatus, ...] = ()
    slot_groups: tuple[SlotGroup, ...] = ()
    process_id: ProcessId = ""
    bundle_steps: tuple[BundleStepReport, ...] = ()
    released_slots: tuple[ReleasedSlots, ...] = ()


class Tick(NamedTuple):
    """A controller's mark of time. Topic ``heartbeats``, one per partition; log time follows its append time.

    Attributes:
        controller_id: the controller that sends it.
        sent_at_ms: its wall clock at sending.
        seq: seq of the last decision that it has read; 0 for none, and below feature level 3. It dates that decision in
            every partition without a comparison of clocks.
        table_epoch: epoch of the routing table after that decision; 0 likewise.
    """

    controller_id: ControllerId
    sent_at_ms: int
    seq: Seq = Seq(0)
    table_epoch: Epoch = Epoch(0)


@dataclass(frozen=True, slots=True)
class NodeJoined:
    """A node asks to be admitted. Topic ``membership``, key ``node_id``.

    Attributes:
        addresses: the addresses at which it serves; their names are unique.
        zone: its failure domain; empty without one.
        weight: its share of slots relative to other nodes, at least 1.
        capacity: greatest number of replicas that it may hold; 0 means no limit.
        version: version of the node's software, for display.
        started_at_ms: the node's wall clock at process start.
        process_id: as in a heartbeat.
        hands_off: whether it takes part in handoffs: it releases what it is told to, and says so. Otherwise what it
            owns is moved by a single decision.
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
    process_id: ProcessId = field(default="", metadata=later(since_level=PROCESSES_FROM_LEVEL))
    hands_off: bool = field(default=False, metadata=later(since_level=HANDOFFS_FROM_LEVEL))


@dataclass(frozen=True, slots=True)
class NodeLeaving:
    """A node asks to be drained before it leaves. Topic ``membership``, key ``node_id``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str
    process_id: ProcessId = field(default="", metadata=later(since_level=PROCESSES_FROM_LEVEL))


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """A node has left and serves nothing any more. Topic ``membership``, key ``node_id``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str
    process_id: ProcessId = field(default="", metadata=later(since_level=PROCESSES_FROM_LEVEL))

"""The records that nodes and controllers append to ``heartbeats`` and ``membership``.

They are claims and are validated before they have an effect. The codec checks types and ranges. Whether a node is known
and its incarnation current is decided later. Wall-clock fields are for display only; no decision depends on them.

Heartbeats and ticks are named tuples because tens of thousands of them are built per second.
"""

from dataclasses import dataclass
from typing import NamedTuple

from controlplane.core.bundles.reports import BundleStatus
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.reports import SlotSettings, SlotStatus
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import ControllerId, Epoch, Incarnation, NodeId


class Heartbeat(NamedTuple):
    """A node is alive. Topic ``heartbeats``, key ``node_id``.

    Attributes:
        node_id: the node's name.
        incarnation: its process life.
        sent_at_ms: the node's wall clock at sending.
        table_epoch: epoch of the node's table in use; 0 before the first.
        role: the node's role.
        slot_settings: the slot settings that the node was started with; None if it does not report them.
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
    """A controller's mark of time. Topic ``heartbeats``, one per partition; log time follows its append time."""

    controller_id: ControllerId
    sent_at_ms: int


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
    """A node asks to be drained before it leaves. Topic ``membership``, key ``node_id``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """A node has left and serves nothing any more. Topic ``membership``, key ``node_id``."""

    node_id: NodeId
    incarnation: Incarnation
    reason: str

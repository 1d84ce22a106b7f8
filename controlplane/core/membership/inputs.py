"""What nodes and controllers append to ``heartbeats`` and ``membership``.

These are claims, not facts: each is validated before it means anything. The codec has checked types and ranges; whether
a node is known or an incarnation is current is decided later. Wall-clock fields are carried for people and never
trusted.

The records of the intake path are named tuples because they are built tens of thousands of times a second.
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

"""Nodes and the transition table of their status.

``docs/reference/states.md`` is generated from the table.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL
from controlplane.core.values.addresses import Address
from controlplane.core.values.canonical import later
from controlplane.core.values.identifiers import Epoch, Incarnation, NodeId, ProcessId
from controlplane.errors import InvariantViolationError


class NodeRole(Enum):
    """The role of a node (SOFARegistry: data server, session server)."""

    DATA = "data"
    """Owns slots and bundles."""
    SESSION = "session"
    """Uses the table and owns nothing."""


class NodeStatus(Enum):
    """The status of a node. Only decisions change it."""

    ACTIVE = "active"
    """Admitted. A data node receives slots and bundles."""
    DRAINING = "draining"
    """Serves, receives nothing new, and is relieved of what it holds."""
    FENCED = "fenced"
    """Taken for dead; owns nothing. If its process still runs, it has to join again."""
    LEFT = "left"
    """Left by its own request; kept for its incarnation only."""

    @property
    def lives(self) -> bool:
        """Whether a node of this status counts as alive: active or draining."""
        return self in (NodeStatus.ACTIVE, NodeStatus.DRAINING)


TRANSITIONS: dict[tuple[NodeStatus | None, str], NodeStatus] = {
    (None, "NodeAdmitted"): NodeStatus.ACTIVE,
    (NodeStatus.FENCED, "NodeAdmitted"): NodeStatus.ACTIVE,
    (NodeStatus.LEFT, "NodeAdmitted"): NodeStatus.ACTIVE,
    (NodeStatus.ACTIVE, "NodeDraining"): NodeStatus.DRAINING,
    (NodeStatus.DRAINING, "NodeDraining"): NodeStatus.DRAINING,
    (NodeStatus.DRAINING, "NodeUndrained"): NodeStatus.ACTIVE,
    (NodeStatus.ACTIVE, "NodeFenced"): NodeStatus.FENCED,
    (NodeStatus.DRAINING, "NodeFenced"): NodeStatus.FENCED,
    (NodeStatus.ACTIVE, "NodeRemoved"): NodeStatus.LEFT,
    (NodeStatus.DRAINING, "NodeRemoved"): NodeStatus.LEFT,
    (NodeStatus.FENCED, "NodeRemoved"): NodeStatus.LEFT,
}
"""Transition table: (status, name of the event) to the next status. None is an unknown node, other pairs are errors."""


PROCESSES_FROM_LEVEL: Final = 3
"""The feature level from which records of a node name its process beside the incarnation."""


def are_two_processes(one: ProcessId, other: ProcessId) -> bool:
    """Whether two records of one incarnation are certainly of two processes; not if one of them names none."""
    return "" not in (one, other) and one != other


@dataclass(frozen=True, slots=True)
class Node:
    """A node as an entry of the state.

    Attributes:
        node_id: its name.
        incarnation: its current process life; records of a smaller one are refused.
        role: see :class:`NodeRole`.
        status: see :class:`NodeStatus`.
        addresses: the addresses at which it serves.
        zone: its failure domain; empty without one.
        weight: its share of slots relative to other nodes.
        capacity: greatest number of replicas that it may hold; 0 means no limit.
        version: version of its software.
        admitted_at_offset: next offset of ``heartbeats`` partition 0 at its admission; -1 if the leader had not read
            the partition so far. Below feature level 3, the silence of a node that never sends a heartbeat counts from
            there.
        changed_at_ms: log time of the last change of its status.
        leaving: whether the node itself asked for its drain. Only a drain that an operator asked for can be undone.
        process_id: the process that was admitted; empty below :data:`PROCESSES_FROM_LEVEL`.
        hands_off: whether it takes part in handoffs, as its join said.
        replaced_epoch: the epoch in which this process took the place of another one of the node, which was taken for
            alive; 0 if it did not. Until that one has certainly read this, it may serve what this one says it releases.
    """

    node_id: NodeId
    incarnation: Incarnation
    role: NodeRole
    status: NodeStatus
    addresses: tuple[Address, ...]
    zone: str
    weight: int
    capacity: int
    version: str
    admitted_at_offset: int
    changed_at_ms: int
    leaving: bool = False
    process_id: ProcessId = field(default="", metadata=later(since_level=PROCESSES_FROM_LEVEL))
    hands_off: bool = field(default=False, metadata=later(since_level=HANDOFFS_FROM_LEVEL))
    replaced_epoch: Epoch = field(default=Epoch(0), metadata=later(since_level=HANDOFFS_FROM_LEVEL))

    @property
    def lives(self) -> bool:
        """Whether it counts as alive: active or draining."""
        return self.status.lives

    @property
    def may_hold(self) -> bool:
        """Whether it may keep slots and bundles: a data node that lives."""
        return self.lives and self.role is NodeRole.DATA

    @property
    def places(self) -> bool:
        """Whether it may receive slots and bundles, standing orders aside: an active data node."""
        return self.status is NodeStatus.ACTIVE and self.role is NodeRole.DATA


def next_status(before: NodeStatus | None, event_name: str, node_id: NodeId) -> NodeStatus:
    """The status after an event.

    Raises:
        InvariantViolationError: the transition table has no row for the event in this status.
    """
    after = TRANSITIONS.get((before, event_name))
    if after is None:
        message = f"node {node_id!r}: status {before.value if before else 'unknown'} has no transition for {event_name}"
        raise InvariantViolationError(message)
    return after

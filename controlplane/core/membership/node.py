"""Members and what may become of them.

The transition table is the rule; ``docs/reference/states.md`` is drawn from it.
"""

from dataclasses import dataclass
from enum import Enum

from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Incarnation, NodeId
from controlplane.errors import InvariantViolationError


class NodeRole(Enum):
    """What a member is there for (SOFARegistry: data server, session server)."""

    DATA = "data"
    """Owns slots and bundles."""
    SESSION = "session"
    """Uses the table and owns nothing; its epoch lag is shown."""


class NodeStatus(Enum):
    """Where a node stands. Only decisions change it."""

    ACTIVE = "active"
    """Admitted; a data node is given slots and bundles."""
    DRAINING = "draining"
    """Still serving, given nothing new, and relieved of what it holds."""
    FENCED = "fenced"
    """Taken for dead: owns nothing. If it lives, it has to join again."""
    LEFT = "left"
    """Gone on its own account; remembered for its incarnation only."""

    @property
    def lives(self) -> bool:
        """Whether a node that stands so counts as alive: active or draining."""
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
"""(status before, event's name) to status after. What is not here is an error. None stands for an unknown node."""


@dataclass(frozen=True, slots=True)
class Node:
    """A member as decisions describe it.

    Attributes:
        node_id: its name.
        incarnation: the current process life; records of a smaller one are refused.
        role: data nodes own slots and bundles, session nodes only use the table.
        status: see :class:`NodeStatus`.
        addresses: where it serves, by name.
        zone: its failure domain; empty if there is none.
        weight: share of slots relative to other nodes.
        capacity: the most replicas it may hold; 0 means no limit.
        version: its software's version.
        admitted_at_offset: next offset of ``heartbeats`` partition 0 when it was admitted: a node that never sends
            a heartbeat is counted silent from there. -1 if its leader had not read so far.
        changed_at_ms: log time of the last change of status.
        leaving: whether it drains because it asked to go itself; only an operator's drain can be taken back.
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

    @property
    def lives(self) -> bool:
        """Whether it counts as alive."""
        return self.status.lives

    @property
    def may_hold(self) -> bool:
        """Whether what it holds may stay with it: slots and bundles belong to data nodes that live."""
        return self.lives and self.role is NodeRole.DATA

    @property
    def places(self) -> bool:
        """Whether slots and bundles may be given to it, as far as it depends on the node alone."""
        return self.status is NodeStatus.ACTIVE and self.role is NodeRole.DATA


def next_status(before: NodeStatus | None, event_name: str, node_id: NodeId) -> NodeStatus:
    """The status after an event.

    Raises:
        InvariantViolationError: the table has no such transition.
    """
    after = TRANSITIONS.get((before, event_name))
    if after is None:
        message = f"node {node_id!r} is {before.value if before else 'unknown'}: {event_name} cannot happen to it"
        raise InvariantViolationError(message)
    return after

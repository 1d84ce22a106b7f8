"""What a node session is told, and what it asks its driver to do."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.membership.rows import NodeRow
from controlplane.core.values.identifiers import Incarnation
from controlplane.core.values.machine import Output, Woke


@dataclass(frozen=True, slots=True)
class TableRead:
    """The routing table was read to its end for the first time.

    Attributes:
        last_known: the greatest incarnation that is known of the node's name, by the table or else by what was asked
            for in its name; 0 for none.
        wall_ms: wall clock.
    """

    last_known: Incarnation
    wall_ms: int


@dataclass(frozen=True, slots=True)
class TableChanged:
    """A new table; ``row`` is the node's own, if it has one, and ``silence_limit_ms`` the cluster's."""

    row: NodeRow | None
    silence_limit_ms: int


@dataclass(frozen=True, slots=True)
class TableConfirmed:
    """The table was read to its end by a fetch that began at ``asked_at_ms`` or later."""

    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatAcknowledged:
    """The broker has appended the heartbeat that was sent at ``sent_at_ms`` (monotonic)."""

    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """The node shall be relieved of what it holds, as a preparation for leaving."""

    reason: str


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """The node goes now."""

    reason: str


SessionEvent: TypeAlias = (
    Woke | TableRead | TableChanged | TableConfirmed | HeartbeatAcknowledged | DrainAsked | LeaveAsked
)


@dataclass(frozen=True, slots=True)
class SendJoin:
    """Append a join record."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Append a heartbeat; its acknowledgement names ``sent_at_ms``."""

    incarnation: Incarnation
    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class SendLeaving:
    """Append a leaving record."""

    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class SendLeft:
    """Append a left record."""

    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class ConfirmTable:
    """Read the routing table to its end by a fetch that begins now, and answer with :class:`TableConfirmed`."""

    asked_at_ms: int


SessionAction: TypeAlias = SendJoin | SendHeartbeat | SendLeaving | SendLeft | ConfirmTable
SessionOutput: TypeAlias = Output[SessionAction]

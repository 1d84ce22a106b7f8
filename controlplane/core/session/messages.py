"""The events and the actions of a node session."""

from dataclasses import dataclass
from typing import TypeAlias

from controlplane.core.membership.rows import NodeRow
from controlplane.core.values.identifiers import Incarnation
from controlplane.core.values.machine import Output, Woke


@dataclass(frozen=True, slots=True)
class TableRead:
    """The routing table was read to its end for the first time.

    Attributes:
        last_known: the greatest incarnation known for the node's name, from the table or else from the records that
            were sent under that name; at least the floor below which the controllers have forgotten nodes.
        wall_ms: the node's wall clock.
    """

    last_known: Incarnation
    wall_ms: int


@dataclass(frozen=True, slots=True)
class TableChanged:
    """A new table is in use.

    Attributes:
        row: the node's own row; None without one.
        silence_limit_ms: the silence limit of the cluster.
        incarnation_floor: a node without a row is admitted with a greater incarnation only.
    """

    row: NodeRow | None
    silence_limit_ms: int
    incarnation_floor: Incarnation = 0


@dataclass(frozen=True, slots=True)
class TableConfirmed:
    """The table was read to its end, as fetches told it that began at monotonic time ``asked_at_ms`` or later.

    It holds every epoch that was committed before that time; later ones may follow.
    """

    asked_at_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatAcknowledged:
    """The broker has appended the heartbeat that was sent at monotonic time ``sent_at_ms``."""

    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class StepDone:
    """The node has done a step of a handoff, which the leader waits for: its heartbeats say so."""


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """The node asks to be drained before it leaves."""

    reason: str


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """The node leaves now."""

    reason: str


SessionEvent: TypeAlias = (
    Woke | TableRead | TableChanged | TableConfirmed | HeartbeatAcknowledged | StepDone | DrainAsked | LeaveAsked
)


@dataclass(frozen=True, slots=True)
class SendJoin:
    """Append a join record."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class SendHeartbeat:
    """Append a heartbeat; :class:`HeartbeatAcknowledged` returns ``sent_at_ms``."""

    incarnation: Incarnation
    sent_at_ms: int


@dataclass(frozen=True, slots=True)
class SendLeaving:
    """Append a leaving record, which asks for a drain."""

    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class SendLeft:
    """Append a left record: the node serves nothing any more."""

    incarnation: Incarnation
    reason: str


@dataclass(frozen=True, slots=True)
class ConfirmTable:
    """Read the routing table to its end, as a fetch that begins now tells it; answer with :class:`TableConfirmed`."""

    asked_at_ms: int


SessionAction: TypeAlias = SendJoin | SendHeartbeat | SendLeaving | SendLeft | ConfirmTable
SessionOutput: TypeAlias = Output[SessionAction]

"""Events on nodes: admission, drain, fencing, removal, standing orders, self-preservation."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import Incarnation, NodeId


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeAdmitted:
    """A node is a member from now on, new or again. ``node`` is its whole row."""

    node: Node


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeDraining:
    """A node goes: it is relieved of what it holds. ``leaving``: it asked for that itself, and not an operator."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int
    leaving: bool = True


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeUndrained:
    """An operator takes a drain back: the node is active again."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


class FencingCause(Enum):
    """Why a node is fenced."""

    SILENCE = "silence"
    """No heartbeat for longer than the silence limit."""
    SUPERSEDED = "superseded"
    """A greater incarnation of the same node joined: the old process is gone."""


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeFenced:
    """A node is taken for dead and loses what it held; ``silence_ms`` is the evidence."""

    node_id: NodeId
    incarnation: Incarnation
    cause: FencingCause
    silence_ms: int
    at_ms: int


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A node has left on its own account."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


@event(calls_for=CallsFor.PLAN)
@dataclass(frozen=True, slots=True)
class NodeOrdered:
    """An operator's whole word on a node's name from now on; an empty one takes everything back."""

    node_id: NodeId
    order: StandingOrder


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class EvictionsFrozen:
    """Too many nodes fell silent at once: nobody is fenced for silence until this is lifted."""

    silent: tuple[NodeId, ...]
    allowed: int


@event(calls_for=CallsFor.NOTHING)
@dataclass(frozen=True, slots=True)
class EvictionsResumed:
    """Fencing for silence is allowed again; ``reason`` says why."""

    reason: str


MembershipEvent: TypeAlias = (
    NodeAdmitted
    | NodeDraining
    | NodeUndrained
    | NodeFenced
    | NodeRemoved
    | NodeOrdered
    | EvictionsFrozen
    | EvictionsResumed
)


def renewed_by(events: Iterable[object]) -> frozenset[NodeId]:
    """Nodes of which a new process is admitted: it holds nothing of what a former one of that name held."""
    return frozenset(event.node.node_id for event in events if isinstance(event, NodeAdmitted))

"""Events of the membership: admission, drain, fencing, removal, standing orders, self-preservation."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controlplane.core.membership.node import Node
from controlplane.core.membership.standing_orders import StandingOrder
from controlplane.core.values.events import CallsFor, event
from controlplane.core.values.identifiers import Incarnation, NodeId


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node.node_id])
@dataclass(frozen=True, slots=True)
class NodeAdmitted:
    """A node becomes a member, for the first time or again. ``node`` is its whole entry."""

    node: Node


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node_id])
@dataclass(frozen=True, slots=True)
class NodeDraining:
    """A drain of a node begins. ``leaving`` is True if the node itself asked for it, False if an operator did."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int
    leaving: bool = True


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node_id])
@dataclass(frozen=True, slots=True)
class NodeUndrained:
    """An operator ends a drain: the node is active again."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


class FencingCause(Enum):
    """Why a node is fenced."""

    SILENCE = "silence"
    """No heartbeat for longer than the silence limit."""
    SUPERSEDED = "superseded"
    """A greater incarnation of the same node joined."""


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node_id])
@dataclass(frozen=True, slots=True)
class NodeFenced:
    """A node is taken for dead and loses what it held. ``silence_ms`` is its silence in log time."""

    node_id: NodeId
    incarnation: Incarnation
    cause: FencingCause
    silence_ms: int
    at_ms: int


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node_id])
@dataclass(frozen=True, slots=True)
class NodeRemoved:
    """A node has left."""

    node_id: NodeId
    incarnation: Incarnation
    at_ms: int


@event(calls_for=CallsFor.PLAN, nodes=lambda each: [each.node_id])
@dataclass(frozen=True, slots=True)
class NodeOrdered:
    """The whole standing order for a node's name; an empty order removes it."""

    node_id: NodeId
    order: StandingOrder


@event(calls_for=CallsFor.NOTHING, nodes=lambda each: each.silent)
@dataclass(frozen=True, slots=True)
class EvictionsFrozen:
    """Too many nodes fell silent at once: no node is fenced for silence until evictions are resumed."""

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
    """The nodes that the events renew: a new process is admitted, which holds nothing of what the former one held."""
    return frozenset(event.node.node_id for event in events if isinstance(event, NodeAdmitted))

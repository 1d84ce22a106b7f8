"""What operators have ordered to stay so: what a node counts as, where replicas have to be, and where they must not."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from controlplane.core.identifiers import NodeId, SlotId
from controlplane.core.membership import Node

MAX_WEIGHT: Final = 1_000_000
"""The greatest weight of a node: products of weights and slot counts stay far below 64 bits."""


@dataclass(frozen=True, slots=True, order=True)
class Pin:
    """A replica that has to stand where an operator put it.

    Attributes:
        slot_id: of which slot.
        node_id: on which node.
        leads: whether the node also has to lead the slot.
    """

    slot_id: SlotId
    node_id: NodeId
    leads: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Exclusion:
    """A slot that a node must not hold. A node that is to hold nothing at all is excluded by a standing order."""

    slot_id: SlotId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An operator's word on a node's name: it outlives the node's restarts, and stands before the node ever joins.

    Attributes:
        excluded: it is given nothing, whoever it says it is (SOFARegistry's blacklist of data servers).
        weight: counts instead of the weight that the node says; None lets the node say.
        zone: counts instead of the zone that the node says; None lets the node say.
    """

    excluded: bool = False
    weight: int | None = None
    zone: str | None = None


NO_ORDER: Final = StandingOrder()
"""Of a node about which no operator has said anything; it is not kept."""


def as_ordered(node: Node, order: StandingOrder) -> Node:
    """The node as planning and the routing table have to see it; an excluded one weighs nothing."""
    if order == NO_ORDER:
        return node
    weight = node.weight if order.weight is None else order.weight
    zone = node.zone if order.zone is None else order.zone
    return replace(node, weight=0 if order.excluded else weight, zone=zone)


def inherited_pins(pins: Iterable[Pin], before_count: int, after_count: int) -> tuple[Pin, ...]:
    """The pins that the parts of split slots inherit."""
    return tuple(
        sorted(
            replace(pin, slot_id=part)
            for pin in pins
            for part in range(pin.slot_id + before_count, after_count, before_count)
        )
    )


def inherited_exclusions(exclusions: Iterable[Exclusion], before_count: int, after_count: int) -> tuple[Exclusion, ...]:
    """The exclusions that the parts of split slots inherit."""
    return tuple(
        sorted(
            replace(exclusion, slot_id=part)
            for exclusion in exclusions
            for part in range(exclusion.slot_id + before_count, after_count, before_count)
        )
    )

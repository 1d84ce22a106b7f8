"""Standing orders: what operators have said of a node's name."""

from dataclasses import dataclass, replace
from typing import Final

from controlplane.core.membership.node import Node

MAX_WEIGHT: Final = 1_000_000
"""The greatest weight of a node: products of weights and slot counts stay far below 64 bits."""


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An operator's word on a node's name: it outlives the node's restarts, and stands before the node ever joins.

    Attributes:
        excluded: it is given nothing, whatever it reports of itself (SOFARegistry's blacklist of data servers).
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

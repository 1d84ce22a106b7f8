"""Standing orders: an operator's lasting settings for a node's name."""

from dataclasses import dataclass, replace
from typing import Final

from controlplane.core.membership.node import Node

MAX_WEIGHT: Final = 1_000_000
"""The greatest weight of a node. Products of weights and slot counts then fit easily into 64 bits."""


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An operator's settings for a node's name. They outlive restarts of the node, and may exist before it joins.

    Attributes:
        excluded: whether the node receives nothing (SOFARegistry's blacklist of data servers).
        weight: replaces the weight that the node reports; None keeps the reported one.
        zone: replaces the zone that the node reports; None keeps the reported one.
    """

    excluded: bool = False
    weight: int | None = None
    zone: str | None = None


NO_ORDER: Final = StandingOrder()
"""The standing order of a node without settings; the state does not keep it."""


def as_ordered(node: Node, order: StandingOrder) -> Node:
    """The node with a standing order applied, for planning and the routing table. An excluded node has weight 0."""
    if order == NO_ORDER:
        return node
    weight = node.weight if order.weight is None else order.weight
    zone = node.zone if order.zone is None else order.zone
    return replace(node, weight=0 if order.excluded else weight, zone=zone)

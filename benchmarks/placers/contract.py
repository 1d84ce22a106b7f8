"""The interface of a placer."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol, TypeAlias

from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.identifiers import NodeId

Table: TypeAlias = tuple[tuple[NodeId, ...], ...]
"""For each slot its holders, the slot leader first."""


class Placer(Protocol):
    """Places the slots of one table; it remembers what it has to from one call to the next.

    Attributes:
        name: its name in the output.
        heeds_weights: whether a node of twice the weight gets twice as much.
        heeds_zones: whether it spreads a slot's replicas over zones.
    """

    name: str
    heeds_weights: bool
    heeds_zones: bool

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """The tables that follow one another until nothing changes any more; at least one.

        Args:
            nodes: the living nodes, by name; at least as many as a slot has replicas.
        """
        ...


def empty_table(slot_count: int) -> Table:
    """A table without nodes."""
    return ((),) * slot_count


def stable_hash(text: str) -> int:
    """64 bits that are the same in every process; the first eight bytes of BLAKE2b."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())

"""What a planner of slots is given and what it answers."""

from dataclasses import dataclass

from controlplane.core.decision import Certificate
from controlplane.core.identifiers import NodeId
from controlplane.core.slot_table import Slot


@dataclass(frozen=True, slots=True)
class PlacementNode:
    """A node as planning sees it.

    Attributes:
        node_id: its name.
        weight: its share of replicas relative to other nodes; 0 for one that lives but is to hold nothing.
        capacity: the most replicas it may hold; 0 means no limit.
    """

    node_id: NodeId
    weight: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned slot table.

    Attributes:
        slots: the rows that change, by slot id; rows that are not here stay as they are.
        certificate: the proof that nothing moved without need.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate

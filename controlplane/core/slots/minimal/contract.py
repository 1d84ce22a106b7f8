"""The planner's input and output."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId


@dataclass(frozen=True, slots=True)
class PlacementNode:
    """A node as the planner sees it.

    Attributes:
        node_id: its name.
        weight: its share of replicas relative to other nodes; 0 for a living node that is to hold nothing.
        capacity: the most replicas that it may hold; 0 means no limit.
        zone: its failure domain; empty for a node that shares none with another node.
    """

    node_id: NodeId
    weight: int
    capacity: int
    zone: str = ""


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """The rules for a table.

    Attributes:
        replica_count: copies of each slot, the slot leader included; at least 1.
        zone_rule: whether a zone may hold more than ``replicas_per_zone`` replicas of a slot.
        replicas_per_zone: at least 1.
        tolerance_percent: how far a node's count may be from its share, in percent of the share; 0 allows only the
            floor and the ceiling of the share.
    """

    replica_count: int
    zone_rule: ZoneRule = ZoneRule.IGNORED
    replicas_per_zone: int = 1
    tolerance_percent: int = 0


@dataclass(frozen=True, slots=True)
class LoadGoal:
    """How far load is to be spread, if it is known.

    Attributes:
        loads: the load that each slot brings to its leader, in any one unit; a missing slot brings none.
        target_percent: the greatest load of a node, in percent of its fair part by weight; 105, for example.
        most_moves: replicas that may be moved to spread load.
    """

    loads: Mapping[SlotId, int]
    target_percent: int
    most_moves: int


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """The planner's input.

    Attributes:
        previous: one row for each slot, by slot id (leader None and no followers if it never had a node). Holders that
            are not among ``nodes`` are gone.
        nodes: the living nodes, in any order.
        rules: the rules for the table.
        epoch: the epoch of the planned table; a slot whose leader changes takes it as its leader epoch.
        ready: replicas that report to be up to date, preferred as new leaders.
        pins: replicas that have to be placed.
        exclusions: replicas that must not be placed.
        load: how far load is to be spread afterwards; None if it is not known.
    """

    previous: tuple[Slot, ...]
    nodes: tuple[PlacementNode, ...]
    rules: PlacementRules
    epoch: Epoch
    ready: AbstractSet[tuple[SlotId, NodeId]] = frozenset()
    pins: tuple[Pin, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    load: LoadGoal | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned slot table.

    Attributes:
        slots: the rows that change, by slot id; all other rows stay.
        certificate: the proof that nothing moved without need.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate

    def applied_to(self, previous: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """The whole table after the plan."""
        rows = {slot.slot_id: slot for slot in self.slots}
        return tuple(rows.get(slot.slot_id, slot) for slot in previous)

"""What a planner of slots is given and what it answers."""

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
    """A node as planning sees it.

    Attributes:
        node_id: its name.
        weight: its share of replicas relative to other nodes; 0 for one that lives but is to hold nothing.
        capacity: the most replicas it may hold; 0 means no limit.
        zone: its failure domain; empty for a node that shares none with anybody.
    """

    node_id: NodeId
    weight: int
    capacity: int
    zone: str = ""


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """What a table has to be like.

    Attributes:
        replica_count: copies wished of each slot, the slot leader included; at least 1.
        zone_rule: whether a zone may hold more than ``replicas_per_zone`` replicas of a slot.
        replicas_per_zone: at least 1.
        tolerance_percent: how far from its share a node's count may be, in percent of the share; 0 allows the floor
            and the ceiling of the share and nothing else.
    """

    replica_count: int
    zone_rule: ZoneRule = ZoneRule.IGNORED
    replicas_per_zone: int = 1
    tolerance_percent: int = 0


@dataclass(frozen=True, slots=True)
class LoadGoal:
    """How far load is to be spread, where it is known.

    Attributes:
        loads: what each slot brings to its leader, in any one unit; a slot that is missing brings nothing.
        target_percent: of a node's fair part of all load (its weight's), the most that it is to bear; 105, say.
        most_moves: replicas that may be moved for it.
    """

    loads: Mapping[SlotId, int]
    target_percent: int
    most_moves: int


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """What a planner is asked.

    Attributes:
        previous: one row for each slot (leader None and no followers where it never had a node), by slot id. Holders
            that are not among ``nodes`` are gone.
        nodes: who lives, in any order.
        rules: what the table has to be like.
        epoch: the epoch of the table that is planned; a slot whose leader changes takes it as its leader epoch.
        ready: replicas that report to be up to date, preferred as new leaders.
        pins: replicas that have to be there.
        exclusions: replicas that must not be there.
        load: how far load is to be spread after all that; None if it is not known.
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
        slots: the rows that change, by slot id; rows that are not here stay as they are.
        certificate: the proof that nothing moved without need.
    """

    slots: tuple[Slot, ...]
    certificate: Certificate

    def applied_to(self, previous: tuple[Slot, ...]) -> tuple[Slot, ...]:
        """The whole table after the plan."""
        rows = {slot.slot_id: slot for slot in self.slots}
        return tuple(rows.get(slot.slot_id, slot) for slot in previous)

"""The certificate of a slot plan: the number of moves, the least possible number, and the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId


@dataclass(frozen=True, slots=True)
class ReadyHeirs:
    """The holders of a slot without a living leader that reported to have all its data: one of them has to lead.

    Attributes:
        slot_id: the slot.
        node_ids: some of its holders, sorted by name; at least one, but not all.
    """

    slot_id: SlotId
    node_ids: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class LoadStage:
    """The moves beyond the least number that spread load.

    Attributes:
        before: the greatest load of a node relative to its fair part, before the stage; written as ``node_shares`` are.
        after: the same after the stage.
        moved: replicas that it moved.
        leader_changes: slots whose leader it changed.
        least_leader_changes: the least number of changes that brings every node to at most the target.
    """

    before: str
    after: str
    moved: int
    leader_changes: int
    least_leader_changes: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that the slot plan of a decision moves as little as possible (spec: minimal movement).

    Attributes:
        policy: the slot policy that planned, for example ``minimal``.
        moved: replicas in the planned table that were not there before, over all decisions that carry the plan out.
        least_moved: the proven least number under exact balance.
        leader_changes: slots whose leader is another node than before.
        least_leader_changes: the proven least number, given the replica sets.
        node_prices: one integer price per node, sorted by name: the dual solution that proves ``least_moved``.
        leader_prices: the same for the slot leaders.
        lost_slots: slots of which no living replica was left; their new replicas start empty.
        ready_heirs: the readiness that the planner knew of, where it affects the choice, by slot id.
        node_shares: each node's fair share of replicas: an integer, or a fraction such as ``164/3``.
        leader_shares: each node's fair share of leaderships, if it does not follow from ``node_shares``.
        absence_price: the price of a missing replica, if the nodes' capacities are used up.
        zone_violations: replicas in zones that already hold enough of their slot, the least possible (soft zones).
        shortfalls: what was asked for and is impossible, with the reason, one sentence each.
        load: the additional moves that spread load; the other fields do not count them.
        rows_before_load: the rows changed by ``load``, as they were before: the table that the other fields prove.
    """

    policy: str
    moved: int
    least_moved: int
    leader_changes: int
    least_leader_changes: int
    node_prices: Mapping[NodeId, int]
    leader_prices: Mapping[NodeId, int]
    lost_slots: tuple[SlotId, ...]
    ready_heirs: tuple[ReadyHeirs, ...] = ()
    node_shares: Mapping[NodeId, str] = field(default_factory=dict)
    leader_shares: Mapping[NodeId, str] = field(default_factory=dict)
    absence_price: int = 0
    zone_violations: int = 0
    shortfalls: tuple[str, ...] = ()
    load: LoadStage | None = None
    rows_before_load: tuple[Slot, ...] = ()

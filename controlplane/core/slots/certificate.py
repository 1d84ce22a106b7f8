"""The certificate of a slot plan: how many moves it made, the least possible number, and the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId


@dataclass(frozen=True, slots=True)
class ReadyHeirs:
    """Who of the holders of a slot without a living leader had reported to have all its data: one of them has to lead.

    Attributes:
        slot_id: the slot.
        node_ids: some of its holders, sorted by name; never none and never all of them.
    """

    slot_id: SlotId
    node_ids: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class LoadStage:
    """What was moved beyond the least, to spread load.

    Attributes:
        before: the greatest load of a node relative to its fair part, before; as ``node_shares`` are written.
        after: the same after it.
        moved: replicas that it moved.
        leader_changes: slots whose leader it changed.
        least_leader_changes: how many it takes at least to bring every node under the target.
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
        node_prices: one integer price a node, sorted by name: the dual that proves ``least_moved``.
        leader_prices: the same for the slot leaders.
        lost_slots: slots of which no living replica was left; their new replicas start empty.
        ready_heirs: what the planner knew of readiness as far as it decides, by slot id.
        node_shares: each node's fair share of replicas, a whole number or a fraction as ``164/3``.
        leader_shares: each node's fair share of leaderships where it does not follow from ``node_shares``.
        absence_price: the price of the absence of a node where the nodes' capacities are used up.
        zone_violations: replicas in zones that hold enough of their slot already, the least possible (soft zones).
        shortfalls: what was wished and could not be, and why: a sentence each.
        load: what was moved beyond that to spread load; the other fields do not count it.
        rows_before_load: the rows that this changed, as they were before: the table that the other fields prove.
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

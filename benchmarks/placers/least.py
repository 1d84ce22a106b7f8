"""The default slot policy, ``minimal``: docs/explanation/placement.md."""

from collections.abc import Sequence

from benchmarks.placers.contract import Table, empty_table
from controlplane.core.slots.minimal import planner as minimal
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules, Plan
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch

_EPOCH = Epoch(1)


class LeastMovement:
    """Floor and ceiling of the share by weight, with the least movement that this allows."""

    name = "minimal"
    heeds_weights = True
    heeds_zones = True

    def __init__(self, slot_count: int, rules: PlacementRules) -> None:
        self._table = empty_table(slot_count)
        self._rules = rules

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        holders = list(self._table)
        for slot in _plan(self._table, nodes, self._rules).slots:
            holders[slot.slot_id] = slot.replicas
        self._table = tuple(holders)
        return [self._table]


def least_moves(table: Table, nodes: Sequence[PlacementNode], rules: PlacementRules) -> int:
    """The fewest new replicas by which any table becomes exactly balanced over these nodes."""
    return _plan(table, nodes, rules).certificate.least_moved


def _plan(table: Table, nodes: Sequence[PlacementNode], rules: PlacementRules) -> Plan:
    previous = tuple(
        Slot(slot_id, holders[0] if holders else None, tuple(sorted(holders[1:])), Epoch(0))
        for slot_id, holders in enumerate(table)
    )
    return minimal.plan(PlacementProblem(previous, tuple(nodes), rules, _EPOCH))

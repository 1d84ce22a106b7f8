"""SOFARegistry's slot table: docs/explanation/sofa.md.

Every tick finds its slots stable, so this is the lower bound of its ticks. A real one waits between ticks until the
nodes have copied the moved slots.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from benchmarks.placers.contract import Table
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.sofa.arranger import ArrangeSettings, arrange
from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaTable
from controlplane.errors import InvariantViolationError

_MOST_TICKS: Final = 10_000


class Sofa:
    """The arranger with its defaults: a band of ten percent, six leaders or ten followers a tick."""

    name = "sofa"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._settings = ArrangeSettings(slot_count, replica_count)
        self._mint = itertools.count(1).__next__
        self._table = INITIAL_TABLE

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """The table after each tick that changed it."""
        names = [node.node_id for node in nodes]
        tables: list[Table] = []
        for _ in range(_MOST_TICKS):
            tick = arrange(self._table, names, self._settings, self._mint, stable=True)
            if not tick.published:
                return tables or [_holders(self._table)]
            self._table = tick.table
            tables.append(_holders(self._table))
        raise InvariantViolationError(f"SOFARegistry's table still moves after {_MOST_TICKS} ticks")


def _holders(table: SofaTable) -> Table:
    slots = (slot for _, slot in sorted(table.slots.items()))
    return tuple((*(() if slot.leader is None else (slot.leader,)), *slot.followers) for slot in slots)

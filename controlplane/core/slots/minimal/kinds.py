"""Hand-overs of replicas, grouped by cost.

There are millions of hand-overs, but few different costs: leaving a node has few possible costs, and so has arriving at
one. Units and nodes are therefore grouped by these costs, and sums are computed for groups instead of cells.
"""

from collections.abc import Mapping

import numpy as np

from controlplane.core.slots.minimal.exchange import IMPOSSIBLE
from controlplane.core.slots.minimal.matrices import Numbers, Truths, packed, unpacked


class Kinds:
    """Cells of an array grouped by cost; a cell in no group is impossible."""

    def __init__(self, of_cost: Mapping[int, Truths]) -> None:
        self.of_cost = {cost: chosen for cost, chosen in of_cost.items() if chosen.any()}

    @classmethod
    def of(cls, possible: Truths) -> "Kinds":
        """Cells that have no cost yet."""
        return cls({0: possible})

    def split(self, marked: Truths, more: int) -> "Kinds":
        """Add ``more`` to the cost of the marked cells; ``more`` must not be the difference of two existing costs."""
        unmarked = ~marked
        return Kinds(
            {cost: chosen & unmarked for cost, chosen in self.of_cost.items()}
            | {cost + more: chosen & marked for cost, chosen in self.of_cost.items()}
        )

    def without(self, marked: Truths) -> "Kinds":
        """Make the marked cells impossible."""
        return Kinds({cost: chosen & ~marked for cost, chosen in self.of_cost.items()})


def cheapest_meetings(slots: Numbers, givers: Numbers, leaving: Kinds, coming: Kinds, width: int) -> Numbers:
    """For each giver and taker, the least total cost of a unit's leaving and arriving in one of the slots.

    Args:
        slots: the slot of each unit.
        givers: the giver of each unit, ascending.
        leaving: units, by the cost of taking them away.
        coming: slots by nodes, by the cost of giving the node a unit of the slot.
        width: number of nodes.
    """
    cheapest = np.full((width, width), IMPOSSIBLE, np.int64)
    for cost_to_come, takers in coming.of_cost.items():
        words = packed(takers)
        for cost_to_leave, units in leaving.of_cost.items():
            present, first = np.unique(givers[units], return_index=True)
            met = unpacked(np.bitwise_or.reduceat(words[slots[units]], first, axis=0), width)
            lower = np.where(met, cost_to_leave + cost_to_come, IMPOSSIBLE)
            cheapest[present] = np.minimum(cheapest[present], lower)
    return cheapest


def meetings_at(prices: Numbers, unit_count: int, leaving: Kinds, coming: Kinds) -> Truths:
    """Matrix of units by takers: where leaving and arriving together cost exactly the taker's price.

    Args:
        prices: the price of each taker.
        unit_count: number of units.
        leaving: units, by the cost of taking them away.
        coming: units by takers, by the cost of giving the unit's slot to the taker.
    """
    fits = np.zeros((unit_count, len(prices)), np.bool_)
    for cost_to_come, takers in coming.of_cost.items():
        for cost_to_leave, units in leaving.of_cost.items():
            wanted = prices == cost_to_leave + cost_to_come
            if wanted.any():
                fits |= takers & wanted & units[:, None]
    return fits

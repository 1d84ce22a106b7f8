"""Hand-overs of replicas by what they cost.

There are millions of hand-overs and a handful of costs: what it costs to leave has few values, and so has what it costs
to come. So units and nodes are sorted by these, and sums are formed of values, not of cells.
"""

from collections.abc import Mapping

import numpy as np

from controlplane.core.slots.minimal.exchange import IMPOSSIBLE
from controlplane.core.slots.minimal.matrices import Numbers, Truths, packed, unpacked


class Kinds:
    """Cells of an array by what they cost; a cell that is of no kind is impossible."""

    def __init__(self, of_cost: Mapping[int, Truths]) -> None:
        self.of_cost = {cost: chosen for cost, chosen in of_cost.items() if chosen.any()}

    @classmethod
    def of(cls, possible: Truths) -> "Kinds":
        """Cells that cost nothing yet."""
        return cls({0: possible})

    def split(self, marked: Truths, more: int) -> "Kinds":
        """The marked cells cost so much more; ``more`` is no difference between two costs that there are."""
        unmarked = ~marked
        return Kinds(
            {cost: chosen & unmarked for cost, chosen in self.of_cost.items()}
            | {cost + more: chosen & marked for cost, chosen in self.of_cost.items()}
        )

    def without(self, marked: Truths) -> "Kinds":
        """The marked cells are impossible."""
        return Kinds({cost: chosen & ~marked for cost, chosen in self.of_cost.items()})


def cheapest_meetings(slots: Numbers, givers: Numbers, leaving: Kinds, coming: Kinds, width: int) -> Numbers:
    """For each giver and taker the least that a unit's leaving and its coming cost together in one of the slots.

    Args:
        slots: of each unit.
        givers: of each unit, ascending.
        leaving: units by what it costs to take them away.
        coming: slots by nodes, by what it costs to give one to the node.
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
    """Units by takers: where leaving and coming cost together just what the taker's price says.

    Args:
        prices: for each taker.
        unit_count: number of units.
        leaving: units by what it costs to take them away.
        coming: units by takers, by what it costs to give the unit's slot to the taker.
    """
    fits = np.zeros((unit_count, len(prices)), np.bool_)
    for cost_to_come, takers in coming.of_cost.items():
        for cost_to_leave, units in leaving.of_cost.items():
            wanted = prices == cost_to_leave + cost_to_come
            if wanted.any():
                fits |= takers & wanted & units[:, None]
    return fits

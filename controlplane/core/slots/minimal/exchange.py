"""Brings every node into its band by the cheapest exchanges: minimum-cost flow by successive shortest paths.

The flow network has a vertex for each slot and node, but paths need only be searched among the nodes: an arc from a
*giver* to a *taker* stands for the cheapest slot in which the giver can hand its unit to the taker. One more vertex,
the hub, joins all nodes through the slack of their bands: a node below its upper bound may keep one more unit, and a
node above its lower bound may give one away. Each round finds the shortest distances from the nodes that hold too much
(Bellman-Ford; costs may be negative, but cycles never are) and hands units along disjoint shortest paths until none is
left (as Dinic's algorithm does with distances in arcs). Every path is a shortest one, so the result has the least
possible cost, and the distances are the prices that prove it.

The possible holders of one slot form a matroid with costs (a number of nodes, and a number per zone), so this is the
intersection of valuated matroids (Murota, "Valuated matroid intersection", 1996). Exchanges within a slot therefore
suffice. Along a shortest path with the fewest hand-overs, even several of them in one slot keep it valid and cheapest.

Ties are broken by the number of hand-overs, then by the index of the node, so equal inputs give equal answers.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from controlplane.core.slots.minimal.bands import Band
from controlplane.core.slots.minimal.matrices import Numbers, Truths
from controlplane.errors import InvariantViolationError

IMPOSSIBLE: Final = 1 << 60
"""A cost greater than that of any path. :func:`fits` says for which tables this holds."""


_LOOK_AHEAD: Final = 256
"""Number of hand-overs that are checked together, because most of them lead to nodes already known as dead ends."""


class HandOver(NamedTuple):
    """One unit handed from one node to another, in a slot."""

    giver: int
    taker: int
    slot: int


class Exchange(Protocol):
    """Units (replicas or slot leaderships) on nodes, as balancing sees them.

    Attributes:
        counts: number of units on each node.
    """

    counts: Numbers

    def costs(self) -> Numbers:
        """The cost of the cheapest hand-over for each giver (row) and taker (column), or ``IMPOSSIBLE``."""
        ...

    def offers(self, giver: int, prices: Numbers) -> tuple[Numbers, Numbers]:
        """The giver's hand-overs that cost exactly their takers' ``prices``: slots and takers, preferred ones first.

        They are computed once, after ``costs``, and may be out of date when they are used; ``cost`` gives the current
        cost.
        """
        ...

    def cost(self, hand_over: HandOver) -> int:
        """The current cost of a hand-over; ``IMPOSSIBLE`` if it cannot be carried out."""
        ...

    def carry_out(self, hand_over: HandOver) -> None:
        """Move one unit and update ``counts``."""
        ...


def fits(slot_count: int, node_count: int) -> bool:
    """Whether every path costs less than ``IMPOSSIBLE``.

    A path has no more hand-overs than there are nodes. With s slots, none costs more than 2 (s + 2)² (the leader of a
    slot that passes over its heirs), multiplied by the scale that makes room for the number of arcs.
    """
    return 2 * (slot_count + 2) ** 2 * _scale(node_count) ** 2 < IMPOSSIBLE


def balance(exchange: Exchange, bands: Sequence[Band]) -> bool:
    """Exchange units at the least cost until every node is in its band; return whether any exchange was necessary.

    The units must be placed at the least cost possible without bands.

    Raises:
        InvariantViolationError: no distribution of the units is in the bands.
    """
    least = np.array([band.least for band in bands], np.int64)
    most = np.array([band.most for band in bands], np.int64)
    exchanged = False
    while ((exchange.counts < least) | (exchange.counts > most)).any():
        if not _Round(exchange, least, most).run():
            raise InvariantViolationError(
                f"placement: no exchange brings counts {exchange.counts.tolist()} into the bands "
                f"{[(band.least, band.most) for band in bands]}; report the slot table that it started from"
            )
        exchanged = True
    return exchanged


def prices(exchange: Exchange, bands: Sequence[Band]) -> list[int]:
    """The price of one more unit at each node: the dual solution that proves that the exchange's cost is the least.

    Handing a unit over costs at least the difference of the two prices. Only a full node may have a positive price, and
    only a node at its lower bound a negative one.
    """
    least = np.array([band.least for band in bands], np.int64)
    most = np.array([band.most for band in bands], np.int64)
    lengths = _lengths(exchange.costs(), exchange.counts, least, most)
    distances = _distances(lengths, np.zeros(len(lengths), np.int64))
    costs = distances // _scale(len(bands))  # the number of arcs, which was added, is less than the scale
    return [int(costs[-1] - cost) for cost in costs[:-1]]


def _scale(width: int) -> int:
    """The factor of costs, so that the number of arcs decides between paths of equal cost."""
    return width + 2


def _lengths(costs: Numbers, counts: Numbers, least: Numbers, most: Numbers) -> Numbers:
    """The lengths of the arcs between all vertices (the hub is the last): cost times the scale, plus one."""
    width = len(counts)
    lengths = np.full((width + 1, width + 1), IMPOSSIBLE, np.int64)
    known = costs < IMPOSSIBLE
    lengths[:width, :width][known] = costs[known] * _scale(width) + 1
    lengths[:width, width][counts < most] = 1
    lengths[width, :width][counts > least] = 1
    return lengths


def _distances(lengths: Numbers, begin: Numbers) -> Numbers:
    """The shortest distance of every vertex, with ``begin`` as the initial bounds (Bellman-Ford).

    Raises:
        InvariantViolationError: there is a negative cycle: distances fall more often than there are vertices.
    """
    distances = begin
    for _ in range(len(lengths) + 1):
        shorter = np.minimum(distances, (distances[:, None] + lengths).min(axis=0))
        if (shorter == distances).all():
            return distances
        distances = shorter
    raise InvariantViolationError("placement: an earlier round left out an exchange that lowers the cost")


class _Round:
    """One round: computes distances once, then uses disjoint shortest paths to the nodes that lack a unit.

    Hand-overs within a round never create a new shortest path (each makes its reverse longer by two). A hand-over that
    failed is therefore not tried again before the next round.
    """

    def __init__(self, exchange: Exchange, least: Numbers, most: Numbers) -> None:
        self._exchange = exchange
        self._least: list[int] = least.tolist()
        self._most: list[int] = most.tolist()
        self._hub = width = len(least)
        counts = exchange.counts
        self._surplus: list[int] = np.maximum(counts - most, 0).tolist()
        self._hub_need: int = sum(self._surplus) - int(np.maximum(least - counts, 0).sum())
        starts = [index for index, units in enumerate(self._surplus) if units]
        if self._hub_need < 0:
            starts.append(self._hub)
        self._starts = starts
        lengths = _lengths(exchange.costs(), counts, least, most)
        begin = np.full(width + 1, IMPOSSIBLE, np.int64)
        begin[starts] = 0
        distances = _distances(lengths, begin)
        self._on_shortest = (distances[:, None] < IMPOSSIBLE) & (distances[:, None] + lengths == distances)
        self._prices = (lengths - 1) // _scale(width)
        self._spares = np.flatnonzero(self._on_shortest[width, :width]).tolist()
        self._offers: dict[int, _Offers] = {}
        self._dead = np.zeros(width + 1, np.bool_)

    def run(self) -> bool:
        """Hand units over along shortest paths until none is left; return whether there was one."""
        found = False
        for start in self._starts:
            units = -self._hub_need if start == self._hub else self._surplus[start]
            while units and self._push(start):
                units -= 1
                found = True
        return found

    def _push(self, start: int) -> bool:
        """Hand one unit along a shortest path from ``start``; return whether there was one."""
        path: list[HandOver] = []
        at = start
        while not self._ends(at):
            step = self._step(at)
            if step is not None:
                path.append(step)
                at = step.taker
                continue
            self._dead[at] = True
            if not path:
                return False
            at = path.pop().giver
        for hand_over in path:
            if hand_over.slot >= 0:
                self._exchange.carry_out(hand_over)
        if at == self._hub:
            self._hub_need -= 1
        return True

    def _ends(self, vertex: int) -> bool:
        """Whether this vertex lacks a unit."""
        if vertex == self._hub:
            return self._hub_need > 0
        count = int(self._exchange.counts[vertex])
        return count < self._least[vertex]

    def _step(self, vertex: int) -> HandOver | None:
        """The next arc of a shortest path; its slot is -1 on the way to and from the hub."""
        counts = self._exchange.counts
        if vertex == self._hub:
            for index in self._spares:
                if not self._dead[index] and counts[index] > self._least[index]:
                    return HandOver(vertex, index, -1)
            return None
        if self._on_shortest[vertex, self._hub] and not self._dead[self._hub] and counts[vertex] < self._most[vertex]:
            return HandOver(vertex, self._hub, -1)
        if vertex not in self._offers:
            wanted = np.where(self._on_shortest[vertex, :-1], self._prices[vertex, :-1], IMPOSSIBLE)
            self._offers[vertex] = _Offers(vertex, *self._exchange.offers(vertex, wanted))
        offers = self._offers[vertex]
        while (offer := offers.next_alive(self._dead)) is not None:
            if self._exchange.cost(offer) == self._prices[vertex, offer.taker]:
                return offer
            offers.drop()
        return None


class _Offers:
    """The hand-overs of one giver, with a cursor behind those that were tried."""

    def __init__(self, giver: int, slots: Numbers, takers: Numbers) -> None:
        self._giver = giver
        self._slots = slots
        self._takers = takers
        self._tried = 0

    def next_alive(self, dead: Truths) -> HandOver | None:
        """The next hand-over to a taker that is not a dead end. Dead ends stay so; the cursor never moves back."""
        while self._tried < len(self._takers):
            if not dead[self._takers[self._tried]]:
                return HandOver(self._giver, int(self._takers[self._tried]), int(self._slots[self._tried]))
            alive = ~dead[self._takers[self._tried : self._tried + _LOOK_AHEAD]]
            first = int(alive.argmax())
            self._tried += first if alive[first] else len(alive)
        return None

    def drop(self) -> None:
        """Skip the next hand-over."""
        self._tried += 1

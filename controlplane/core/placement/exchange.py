"""Brings every node into its band by the cheapest exchanges: minimum-cost flow by successive shortest paths.

The flow network has a vertex for each slot and node, but paths need only be sought among the nodes: an arc from a
*giver* to a *taker* stands for the cheapest slot in which the one can hand its unit to the other. One more vertex, the
hub, joins all nodes through the slack of their bands: a node below its upper bound may keep a unit more, a node above
its lower bound may spare one. A round finds the shortest distances from the nodes that hold too much (Bellman and
Ford; costs may be negative, cycles never are) and hands units along disjoint shortest paths until none is left (as
Dinic does with distances in arcs). Because every path was a shortest one, the result costs the least possible, and
the distances are the prices that prove it.

Ties fall by the number of hand-overs, then by the index of the node: equal inputs give equal answers.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from controlplane.core.placement.bands import Band
from controlplane.errors import InvariantViolationError

_UNREACHED = 1 << 80
"""Farther than any path: a hand-over costs less than 2^45, and a path has fewer than 2^20 of them."""


class Exchange(Protocol):
    """Units (replicas, or slot leaderships) on nodes, as far as balancing them has to know.

    Attributes:
        counts: how many units each node holds.
    """

    counts: list[int]

    def offers(self) -> list[dict[int, int]]:
        """For each giver: from the cost of a hand-over to the set of possible takers, as a bit set of node indexes."""
        ...

    def units(self, giver: int) -> Sequence[int]:
        """The slots in which a node held a unit when ``offers`` was last called, those to be given first in front."""
        ...

    def takers(self, giver: int, slot: int, wanted: Mapping[int, int]) -> int:
        """Of the nodes ``wanted`` (cost to bit set), those that can have this unit at just that cost."""
        ...

    def hand_over(self, giver: int, taker: int, slot: int) -> None:
        """Move one unit and keep ``counts``."""
        ...


def balance(exchange: Exchange, bands: Sequence[Band]) -> bool:
    """Exchange units at the least cost until every node is in its band; whether anything had to be exchanged.

    The units given must be where they cost least if there were no bands.

    Raises:
        InvariantViolationError: no distribution of the units is in the bands.
    """
    exchanged = False
    while any(not band.least <= count <= band.most for count, band in zip(exchange.counts, bands, strict=True)):
        if not _Round(exchange, bands).run():
            raise InvariantViolationError(
                f"placement: no exchange brings counts {exchange.counts} into the bands "
                f"{[(band.least, band.most) for band in bands]}; report the slot table that it started from"
            )
        exchanged = True
    return exchanged


def prices(exchange: Exchange, bands: Sequence[Band]) -> list[int]:
    """The price of one more unit at each node: the dual solution that proves that the exchange's cost is the least.

    A unit cannot be handed over for less than the difference of prices; only a full node may have a positive price,
    and only a node at its lower bound a negative one.
    """
    arcs = _arcs(exchange, bands)
    distances = _distances(arcs, range(len(arcs)))
    scale = len(arcs) + 1
    costs = [distance // scale for distance in distances]  # what the arcs added stays under the scale
    return [costs[-1] - cost for cost in costs[:-1]]


def _arcs(exchange: Exchange, bands: Sequence[Band]) -> list[list[tuple[int, int]]]:
    """For each vertex (the hub is the last) its arcs (vertex, length); a length is the cost times a scale plus one."""
    hub = len(bands)
    scale = hub + 2
    arcs: list[list[tuple[int, int]]] = []
    for offer in exchange.offers():
        found: list[tuple[int, int]] = []
        seen = 0
        for cost in sorted(offer):
            length = cost * scale + 1
            found.extend((taker, length) for taker in bits(offer[cost] & ~seen))
            seen |= offer[cost]
        arcs.append(found)
    for index, (count, band) in enumerate(zip(exchange.counts, bands, strict=True)):
        if count < band.most:
            arcs[index].append((hub, 1))
    arcs.append(
        [(index, 1) for index, band in enumerate(bands) if exchange.counts[index] > band.least],
    )
    return arcs


def _distances(arcs: list[list[tuple[int, int]]], starts: Sequence[int]) -> list[int]:
    """The shortest distance of every vertex from the nearest start, by Bellman and Ford with a queue.

    Raises:
        InvariantViolationError: a cycle gains; each vertex would be visited more often than there are vertices.
    """
    distances = [_UNREACHED] * len(arcs)
    for start in starts:
        distances[start] = 0
    queue = deque(starts)
    queued = [distance == 0 for distance in distances]
    visits_left = len(arcs) ** 2
    while queue:
        visits_left -= 1
        if visits_left < 0:
            raise InvariantViolationError("placement: an exchange that gains was left out of an earlier round")
        vertex = queue.popleft()
        queued[vertex] = False
        here = distances[vertex]
        for target, length in arcs[vertex]:
            if here + length < distances[target]:
                distances[target] = here + length
                if not queued[target]:
                    queued[target] = True
                    queue.append(target)
    return distances


def bits(mask: int) -> Iterator[int]:
    """The indexes in a bit set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _Round:
    """One round: distances once, then as many disjoint shortest paths as there are, to whichever node lacks a unit.

    Hand-overs within a round never create a new shortest path (each makes its reverse longer by two), so a slot that
    a giver has tried in vain need not be tried again before the next round.
    """

    def __init__(self, exchange: Exchange, bands: Sequence[Band]) -> None:
        self._exchange = exchange
        self._bands = bands
        self._hub = len(bands)
        self._scale = self._hub + 2
        arcs = _arcs(exchange, bands)
        counts = exchange.counts
        self._surplus = [max(0, count - band.most) for count, band in zip(counts, bands, strict=True)]
        lack = sum(max(0, band.least - count) for count, band in zip(counts, bands, strict=True))
        self._hub_need = sum(self._surplus) - lack
        starts = [index for index, units in enumerate(self._surplus) if units]
        if self._hub_need < 0:
            starts.append(self._hub)
        self._starts = starts
        self._distances = _distances(arcs, starts)
        self._wanted = [self._on_shortest(vertex, arcs[vertex]) for vertex in range(self._hub + 1)]
        self._cursors = [0] * self._hub
        self._dead = 0

    def _on_shortest(self, vertex: int, arcs: list[tuple[int, int]]) -> dict[int, int]:
        """The arcs of a vertex that lie on shortest paths: cost to bit set."""
        here = self._distances[vertex]
        found: dict[int, int] = {}
        for target, length in arcs:
            if here + length == self._distances[target]:
                cost = length // self._scale
                found[cost] = found.get(cost, 0) | 1 << target
        return found

    def run(self) -> bool:
        """Hand units over along shortest paths until none is left; whether there was one."""
        found = False
        for start in self._starts:
            units = -self._hub_need if start == self._hub else self._surplus[start]
            while units and self._push(start):
                units -= 1
                found = True
        return found

    def _push(self, start: int) -> bool:
        """Hand one unit along one shortest path from ``start``, if there is one left."""
        path: list[tuple[int, int, int]] = []
        at = start
        while not self._ends(at):
            step = self._step(at)
            if step is not None:
                path.append(step)
                at = step[1]
                continue
            self._dead |= 1 << at
            if not path:
                return False
            at = path.pop()[0]
        for giver, taker, slot in path:
            if slot >= 0:
                self._exchange.hand_over(giver, taker, slot)
        if at == self._hub:
            self._hub_need -= 1
        return True

    def _ends(self, vertex: int) -> bool:
        """Whether a unit that comes to this vertex is wanted there."""
        if vertex == self._hub:
            return self._hub_need > 0
        return self._exchange.counts[vertex] < self._bands[vertex].least

    def _step(self, vertex: int) -> tuple[int, int, int] | None:
        """The next arc (giver, taker, slot) of a shortest path; the slot is -1 on the way to and from the hub."""
        wanted = self._wanted[vertex]
        counts, bands = self._exchange.counts, self._bands
        if vertex == self._hub:
            spare = (index for index in bits(wanted.get(0, 0) & ~self._dead) if counts[index] > bands[index].least)
            index = next(spare, None)
            return None if index is None else (vertex, index, -1)
        if wanted.get(0, 0) >> self._hub & ~self._dead >> self._hub & 1 and counts[vertex] < bands[vertex].most:
            return vertex, self._hub, -1
        alive = {cost: mask & ~self._dead for cost, mask in wanted.items()}
        units = self._exchange.units(vertex)
        while self._cursors[vertex] < len(units):
            slot = units[self._cursors[vertex]]
            takers = self._exchange.takers(vertex, slot, alive)
            if takers:
                return vertex, (takers & -takers).bit_length() - 1, slot
            self._cursors[vertex] += 1
        return None

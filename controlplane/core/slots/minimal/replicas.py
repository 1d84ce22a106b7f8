"""First stage: which nodes hold each slot, with the fewest new replicas that balance allows."""

import heapq
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from controlplane.core.slots.minimal.bands import Band, aims
from controlplane.core.slots.minimal.exchange import IMPOSSIBLE, HandOver
from controlplane.core.slots.minimal.kinds import Kinds, cheapest_meetings, meetings_at
from controlplane.core.slots.minimal.matrices import Numbers, Truths, cells, cells_by_column, count_by_row, count_pairs
from controlplane.core.values.identifiers import NodeId


@dataclass(frozen=True, slots=True)
class ZoneLimit:
    """The number of replicas of a slot that a zone may hold.

    Attributes:
        zones: each node's zone, by index.
        most: the limit of each zone for one slot.
        hard: whether the limit is never exceeded; otherwise each replica above it costs ``violation``.
        violation: a cost greater than that of all moves of a table together.
    """

    zones: Numbers
    most: Numbers
    hard: bool
    violation: int


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """The limits of each slot, by index of slot and node.

    Attributes:
        units: number of replicas of each slot.
        eligible: the nodes that may hold it; None if all may.
        pinned: the nodes that have to hold it; None without pins.
        zones: the limits of zones; None if zones do not matter.
    """

    units: Numbers
    eligible: Truths | None
    pinned: Truths | None
    zones: ZoneLimit | None


class ReplicaSets:
    """The holders of all slots while they are planned; the units to exchange are replicas, and a new one costs 1.

    Attributes:
        before: matrix of slots by nodes: the holders before.
        now: matrix of slots by nodes: the holders now.
        counts: number of replicas on each node.
    """

    def __init__(self, before: Truths, leaders: Numbers, limits: SlotLimits) -> None:
        """``leaders`` contains each slot's former leader, -1 for none."""
        self.before = before
        self.now = before.copy()
        self._limits = limits
        self._leaders = leaders
        if limits.eligible is not None:
            self.now &= limits.eligible
        if limits.pinned is not None:
            self.now |= limits.pinned
        slots, nodes = cells(self.now)
        self.counts: Numbers = np.bincount(nodes, minlength=self.now.shape[1])
        zones = limits.zones
        self._zone_counts: Numbers | None = None
        if zones is not None:
            self._zone_counts = count_pairs(slots, zones.zones[nodes], (len(before), len(zones.most)))

    def fill(self, names: Sequence[NodeId], bands: Sequence[Band]) -> None:
        """Give each slot its number of replicas, keeping all previous ones that may stay.

        The cost is the least possible without bands: a slot gets a new replica only if it has kept every previous one
        that may stay. The bands serve as targets, which are met whenever no exchange is needed.
        """
        units = self._limits.units
        targets = aims(self.counts.tolist(), bands, int(units.sum()))
        held = count_by_row(self.now)
        crowded = held > units
        if self._limits.zones is not None and self._zone_counts is not None:
            crowded |= (self._zone_counts > self._limits.zones.most).any(axis=1)
        spared: dict[int, list[int]] = {}
        for slot in np.flatnonzero(crowded).tolist():
            spared[slot] = self._drop_what_may_not_stay(slot, targets)
        missing = units - count_by_row(self.now)
        seats = _Seats(names, self.counts.tolist(), targets, self._zones_of_nodes())
        for slot in np.flatnonzero(missing > 0).tolist():
            self._complete(slot, int(missing[slot]), spared.get(slot, []), seats)

    def _zones_of_nodes(self) -> list[int]:
        zones = self._limits.zones
        return [0] * self.now.shape[1] if zones is None else [int(zone) for zone in zones.zones]

    def _drop_what_may_not_stay(self, slot: int, targets: Sequence[int]) -> list[int]:
        """Drop a slot's surplus replicas, and return them: a full zone may have to take some of them back."""
        pinned = self._pins(slot)
        leader = int(self._leaders[slot])
        counts = self.counts
        ranked = sorted(
            np.flatnonzero(self.now[slot]).tolist(),
            key=lambda index: (index not in pinned, index != leader, int(counts[index]) - targets[index], index),
        )
        for index in ranked:
            self._put(slot, index, held=False)
        kept, over = 0, []
        for index in ranked:
            if kept < int(self._limits.units[slot]) and (index in pinned or not self._is_full(slot, index)):
                self._put(slot, index, held=True)
                kept += 1
            else:
                over.append(index)
        return over

    def _complete(self, slot: int, missing: int, spared: Sequence[int], seats: "_Seats") -> None:
        """Give a slot its missing replicas at the least cost, on the nodes that lack most."""
        zones, counts = self._limits.zones, self._zone_counts
        open_zones = None
        if zones is not None and counts is not None:
            open_zones = (zones.most - counts[slot]).tolist()
        for index in seats.take(missing, lambda index: self._may_take(slot, index), open_zones):
            self._put(slot, index, held=True)
            missing -= 1
        for index in spared:  # back into a zone that is full: a violation, but no move
            if missing and zones is not None and not zones.hard:
                self._put(slot, index, held=True)
                seats.sit(index)
                missing -= 1
        for index in seats.take(missing, lambda index: self._may_take(slot, index), None):
            self._put(slot, index, held=True)

    def _may_take(self, slot: int, index: int) -> bool:
        eligible = self._limits.eligible
        return not self.now[slot, index] and (eligible is None or bool(eligible[slot, index]))

    def _pins(self, slot: int) -> frozenset[int]:
        pinned = self._limits.pinned
        return frozenset() if pinned is None else frozenset(np.flatnonzero(pinned[slot]).tolist())

    def _is_full(self, slot: int, index: int) -> bool:
        zones, counts = self._limits.zones, self._zone_counts
        return (
            zones is not None
            and counts is not None
            and bool(counts[slot, zones.zones[index]] >= zones.most[zones.zones[index]])
        )

    def _put(self, slot: int, index: int, *, held: bool) -> None:
        self.now[slot, index] = held
        change = 1 if held else -1
        self.counts[index] += change
        if self._limits.zones is not None and self._zone_counts is not None:
            self._zone_counts[slot, self._limits.zones.zones[index]] += change

    def costs(self) -> Numbers:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`.

        The cost of a hand-over is the sum of the cost of leaving and the cost of arriving. Both have few values, so the
        least cost between two nodes is the least sum of values that occur in one slot.
        """
        width = self.now.shape[1]
        pinned = self._limits.pinned
        slots, givers = cells_by_column(self.now if pinned is None else self.now & ~pinned)
        leaving, coming = self._leaving(slots, givers), self._coming(slice(None), slice(None))
        costs = cheapest_meetings(slots, givers, leaving.in_zone, coming.in_zone, width)
        zones = self._limits.zones
        if zones is None:
            return costs
        between = cheapest_meetings(slots, givers, leaving.between, coming.between, width)
        return np.where(zones.zones[:, None] == zones.zones, costs, between)

    def offers(self, giver: int, prices: Numbers) -> tuple[Numbers, Numbers]:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        pinned, held = self._limits.pinned, self.now[:, giver]
        slots = np.flatnonzero(held if pinned is None else held & ~pinned[:, giver])
        # A follower is given away before a leader, so that a slot keeps its leader where possible.
        slots = slots[np.argsort(self._leaders[slots] == giver, kind="stable")]
        takers = np.flatnonzero(prices < IMPOSSIBLE)
        prices = prices[takers]
        leaving, coming = self._leaving(slots, np.full(len(slots), giver)), self._coming(slots, takers)
        fits = meetings_at(prices, len(slots), leaving.in_zone, coming.in_zone)
        zones = self._limits.zones
        if zones is not None:
            between = meetings_at(prices, len(slots), leaving.between, coming.between)
            fits = np.where(zones.zones[takers] == zones.zones[giver], fits, between)
        rows, columns = cells(fits)
        return slots[rows], takers[columns]

    def _leaving(self, slots: Numbers, givers: Numbers) -> "_Costs":
        """The cost of taking a replica of these slots away from their givers."""
        kept = Kinds.of(np.ones(len(slots), np.bool_)).split(~self.before[slots, givers], -1)
        zones = self._limits.zones
        if zones is None or zones.hard or self._zone_counts is None:
            return _Costs(kept, kept)
        own = zones.zones[givers]
        return _Costs(kept, kept.split(self._zone_counts[slots, own] > zones.most[own], -zones.violation))

    def _coming(self, slots: Numbers | slice, takers: Numbers | slice) -> "_Costs":
        """The cost of giving these nodes, if eligible, a replica of these slots."""
        where = (slots, takers) if isinstance(slots, slice) else (slots[:, None], takers)
        free = ~self.now[where]
        if self._limits.eligible is not None:
            free &= self._limits.eligible[where]
        new = Kinds.of(free).split(~self.before[where], 1)
        zones = self._limits.zones
        if zones is None or self._zone_counts is None:
            return _Costs(new, new)
        full = (self._zone_counts[slots] >= zones.most).take(zones.zones[takers], axis=1)
        return _Costs(new, new.without(full) if zones.hard else new.split(full, zones.violation))

    def cost(self, hand_over: HandOver) -> int:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        giver, taker, slot = hand_over
        now, before = self.now[slot], self.before[slot]
        if not now[giver] or now[taker]:
            return IMPOSSIBLE
        cost = int(before[giver]) - int(before[taker])
        zones = self._limits.zones
        if zones is not None and self._zone_counts is not None and zones.zones[giver] != zones.zones[taker]:
            counts = self._zone_counts[slot]
            full = bool(counts[zones.zones[taker]] >= zones.most[zones.zones[taker]])
            if full and zones.hard:
                return IMPOSSIBLE
            over = bool(counts[zones.zones[giver]] > zones.most[zones.zones[giver]])
            cost += zones.violation * (full - over)
        return cost

    def carry_out(self, hand_over: HandOver) -> None:
        """See :class:`controlplane.core.slots.minimal.exchange.Exchange`."""
        self._put(hand_over.slot, hand_over.giver, held=False)
        self._put(hand_over.slot, hand_over.taker, held=True)

    def moved(self) -> int:
        """Number of new replicas."""
        return int(np.count_nonzero(self.now & ~self.before))

    def violations(self) -> int:
        """Number of replicas above the limits of their zones."""
        zones = self._limits.zones
        if zones is None or zones.hard or self._zone_counts is None:
            return 0
        return int(np.maximum(self._zone_counts - zones.most, 0).sum())


@dataclass(frozen=True, slots=True)
class _Costs:
    """The cost of leaving or arriving, if the replica stays in its zone and if it changes the zone."""

    in_zone: Kinds
    between: Kinds


class _Seats:
    """The nodes ordered by what they lack, those that lack most first.

    A hash breaks ties. The slots of one node thus share their other replicas with many nodes, so that the load of a
    dead node is spread. It also mixes combinations of zones; otherwise later tables would cost more.
    """

    def __init__(
        self, names: Sequence[NodeId], counts: list[int], targets: Sequence[int], zones: Sequence[int]
    ) -> None:
        self._seeds = [zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in names]
        self._counts = counts
        self._targets = targets
        self._zones = zones
        self._heaps: list[list[tuple[int, int, int]]] = [[] for _ in range(max(zones, default=-1) + 1)]
        for index in range(len(names)):
            self._heaps[zones[index]].append(self._entry(index))
        for heap in self._heaps:
            heapq.heapify(heap)

    def _entry(self, index: int) -> tuple[int, int, int]:
        count = self._counts[index]
        return count - self._targets[index], _mixed(self._seeds[index], count), index

    def sit(self, index: int) -> None:
        """Count a replica that a node got in another way."""
        self._counts[index] += 1
        zone = self._zones[index]
        self._heaps[zone] = [self._entry(entry[2]) for entry in self._heaps[zone]]
        heapq.heapify(self._heaps[zone])

    def take(self, wanted: int, fits: Callable[[int], bool], open_zones: list[int] | None) -> list[int]:
        """Take up to ``wanted`` nodes that fit and lack most, at most ``open_zones`` of each zone, and count them."""
        chosen: list[int] = []
        aside: list[tuple[int, int, int]] = []
        while len(chosen) < wanted:
            heap: list[tuple[int, int, int]] | None = None
            for zone, each in enumerate(self._heaps):
                if each and (heap is None or each[0] < heap[0]) and (open_zones is None or open_zones[zone] > 0):
                    heap = each
            if heap is None:
                break
            entry = heapq.heappop(heap)
            index = entry[2]
            if fits(index):
                chosen.append(index)
                self._counts[index] += 1
                aside.append(self._entry(index))
                if open_zones is not None:
                    open_zones[self._zones[index]] -= 1
            else:
                aside.append(entry)
        for entry in aside:
            heapq.heappush(self._heaps[self._zones[entry[2]]], entry)
        return chosen


def _mixed(seed: int, count: int) -> int:
    """A pseudo-random number that breaks ties between nodes that lack equally much."""
    return ((seed ^ count * 0x9E3779B1) * 0x85EBCA6B >> 7) & 0xFFFFFFFF

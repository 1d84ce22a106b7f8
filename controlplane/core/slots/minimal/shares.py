"""The fair share of each node in all replicas, within all limits: exact, in fractions.

The possible counts of nodes form the base polytope of a sum of matroids: each slot takes a number of nodes from those
that may hold it, its pins among them, and a limited number from each zone. The fair point of the polytope is the one at
which no node could hold more, relative to its weight, without taking from a node that holds less: Fujishige's
lexicographically optimal base ("Lexicographically optimal base of a polymatroid with respect to a weight vector",
1980). Without limits it is proportional to the weights; with capacities alone it is water-filling.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from controlplane.core.slots.minimal.flow import FlowNetwork
from controlplane.errors import InvariantViolationError


@dataclass(frozen=True, slots=True)
class SlotGroup:
    """Slots that are alike: the same nodes may hold them.

    Attributes:
        size: number of slots.
        units: replicas of each.
        eligible: indexes of the nodes that may hold them, those of ``pinned`` included.
        pinned: indexes of the nodes that have to hold them.
    """

    size: int
    units: int
    eligible: frozenset[int]
    pinned: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Room:
    """The limits of the nodes' counts.

    Attributes:
        groups: all slots, grouped by the nodes that may hold them.
        capacities: the most replicas that each node may hold.
        zones: each node's zone, by index.
        zone_limits: the most replicas of one slot in each zone.
    """

    groups: tuple[SlotGroup, ...]
    capacities: tuple[int, ...]
    zones: tuple[int, ...]
    zone_limits: tuple[int, ...]

    @property
    def wanted(self) -> int:
        """Number of replicas that all slots ask for."""
        return sum(group.size * group.units for group in self.groups)

    @property
    def pinned(self) -> list[int]:
        """Number of pins of each node."""
        counts = [0] * len(self.capacities)
        for group in self.groups:
            for index in group.pinned:
                counts[index] += group.size
        return counts

    def most_of_each(self) -> list[int]:
        """The most replicas that each node may hold: its capacity, or the number of slots for which it is eligible."""
        eligible = [0] * len(self.capacities)
        for group in self.groups:
            for index in group.eligible if group.units else ():
                eligible[index] += group.size
        return [min(pair) for pair in zip(eligible, self.capacities, strict=True)]

    def most(self) -> int:
        """The number of replicas that can be placed."""
        demands = [Fraction(capacity) for capacity in self.capacities]
        _, excess = self.tightest(demands)
        return sum(self.capacities) - int(excess)

    def tightest(self, demands: Sequence[Fraction]) -> tuple[frozenset[int], Fraction]:
        """The greatest set of nodes with the greatest lack of room for these demands, and how much it lacks.

        If nothing is lacking, these are the nodes that could not hold any more.
        """
        if len(self.groups) == 1 and not self.groups[0].pinned and len(self.groups[0].eligible) == len(demands):
            return self._tightest_of_one(self.groups[0], demands)
        return self._tightest_by_flow(demands)

    def _tightest_of_one(self, group: SlotGroup, demands: Sequence[Fraction]) -> tuple[frozenset[int], Fraction]:
        """The tightest set if all slots are alike, so that limits are nested: nodes, zones, the whole."""
        scale = lcm(*(demand.denominator for demand in demands))
        wanted = [demand.numerator * (scale // demand.denominator) for demand in demands]
        caps = [min(capacity, group.size) * scale for capacity in self.capacities]
        by_zone: dict[int, list[int]] = {}
        for index, zone in enumerate(self.zones):
            by_zone.setdefault(zone, []).append(index)
        found: set[int] = set()
        excess = 0
        for zone, members in by_zone.items():
            over = {index: wanted[index] - caps[index] for index in members if wanted[index] >= caps[index]}
            by_node = sum(over.values())
            whole = sum(wanted[index] for index in members) - self.zone_limits[zone] * group.size * scale
            found.update(members if whole >= by_node else over)
            excess += max(by_node, whole)
        total = sum(wanted) - group.size * group.units * scale
        if total >= excess:
            return frozenset(range(len(demands))), Fraction(total, scale)
        return frozenset(found), Fraction(excess, scale)

    def _tightest_by_flow(self, demands: Sequence[Fraction]) -> tuple[frozenset[int], Fraction]:
        """The tightest set by a minimum cut: source, groups, their zones, nodes before and after capacity, sink."""
        pinned = self.pinned
        scale = lcm(*(demand.denominator for demand in demands))
        wanted = [int(demand * scale) - own * scale for demand, own in zip(demands, pinned, strict=True)]
        width = len(demands)
        first_zone = 2 + 2 * width + len(self.groups)
        network = FlowNetwork(first_zone + len(self.groups) * len(self.zone_limits))
        for index in range(width):
            network.add_arc(2 + index, 2 + width + index, (self.capacities[index] - pinned[index]) * scale)
            network.add_arc(2 + width + index, 1, max(wanted[index], 0))
        for place, group in enumerate(self.groups):
            slots = group.size * scale
            vertex = 2 + 2 * width + place
            network.add_arc(0, vertex, slots * (group.units - len(group.pinned)))
            taken = [0] * len(self.zone_limits)
            for index in group.pinned:
                taken[self.zones[index]] += 1
            free = sorted(group.eligible - group.pinned)
            for zone in sorted({self.zones[index] for index in free}):
                room = max(self.zone_limits[zone] - taken[zone], 0)
                network.add_arc(vertex, first_zone + place * len(self.zone_limits) + zone, slots * room)
            for index in free:
                network.add_arc(first_zone + place * len(self.zone_limits) + self.zones[index], 2 + index, slots)
        sent = network.push_all(0, 1)
        reached = network.reached_from(0)
        tight = frozenset(index for index in range(width) if not reached[2 + width + index])
        return tight, Fraction(sum(max(each, 0) for each in wanted) - sent, scale)


def fair_shares(room: Room, weights: Sequence[int]) -> list[Fraction]:
    """Each node's fair share of all replicas for which there is room; weights have to be positive.

    Progressive filling: all nodes rise together, relative to their weights, until some of them reach a limit. These
    stop, and the others continue. Newton's method on the most violated set finds the levels at which nodes stop.
    """
    pinned = room.pinned
    total = room.most()
    shares = [Fraction(own) for own in pinned]
    frozen: frozenset[int] = frozenset()
    everybody = frozenset(range(len(weights)))
    while frozen != everybody:
        rising = sorted(everybody - frozen)
        target = total - sum((shares[index] for index in frozen), Fraction(0))
        while True:
            level = _level(target, rising, weights, pinned)
            at_level = {weight: level * weight for weight in set(weights)}
            for index in everybody - frozen:
                share = at_level[weights[index]]
                shares[index] = max(Fraction(pinned[index]), share) if pinned[index] else share
            tight, excess = room.tightest(shares)
            if not excess:
                break
            rising = sorted(tight - frozen)
            target = sum((shares[index] for index in rising), Fraction(0)) - excess
        if tight <= frozen:
            raise InvariantViolationError(f"placement: shares {shares} of {total} replicas leave room for more")
        frozen |= tight
    return shares


def _level(target: Fraction, nodes: Sequence[int], weights: Sequence[int], least: Sequence[int]) -> Fraction:
    """The level at which these nodes together hold ``target``, none less than its ``least``."""
    order = sorted(nodes, key=lambda index: (Fraction(least[index], weights[index]) if least[index] else 0, index))
    whole, part = target.numerator, target.denominator
    below, weight = sum(least[index] for index in order), 0
    for place, index in enumerate(order):
        below -= least[index]
        weight += weights[index]
        if place + 1 == len(order):
            break
        after = order[place + 1]
        # Does the level lift the next node no higher than its least? This avoids a division for each node.
        if (whole - below * part) * weights[after] <= least[after] * weight * part:
            break
    return max((target - below) / weight, Fraction(0))

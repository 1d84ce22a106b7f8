"""Verifies that shares are fair: they are possible, and no node could get more from a node with a higher level.

The verification starts with the table itself, which is one possible distribution, and moves the fractions that rounding
left. It then looks for a gift: a unit that a node could give to one that holds less relative to its weight. Only the
fair distribution has no gift (Fujishige 1980), so no solver has to be trusted.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final

from controlplane.core.values.identifiers import NodeId

NOBODY: Final = ""
"""Stands for the replicas for which no node has room; no node has this name."""


@dataclass(frozen=True, slots=True)
class AlikeSlots:
    """Slots that the same nodes may hold.

    Attributes:
        size: number of slots.
        eligible: the nodes that may hold them.
        pinned: the nodes that have to hold them.
        held: number of these slots that each node holds.
    """

    size: int
    eligible: frozenset[NodeId]
    pinned: frozenset[NodeId]
    held: Mapping[NodeId, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the nodes: the most that each may hold, its zone, and the most of a slot in each zone."""

    capacities: Mapping[NodeId, int]
    zones: Mapping[NodeId, str]
    zone_limits: Mapping[str, int]


def prove_shares(
    what: str,
    groups: Sequence[AlikeSlots],
    limits: Limits,
    weights: Mapping[NodeId, Fraction],
    shares: Mapping[NodeId, Fraction],
) -> list[str]:
    """Problems of the claim that these are the fair shares, by name of node; ``NOBODY`` has a share too."""
    scale = lcm(*(share.denominator for share in shares.values()))
    wanted = {name: share.numerator * (scale // share.denominator) for name, share in shares.items()}
    held = dict.fromkeys(shares, 0)
    for group in groups:
        for name, count in group.held.items():
            held[name] = held.get(name, 0) + count * scale
    if sum(held.values()) != sum(wanted.values()) or held.keys() != wanted.keys():
        return [f"certificate: the shares of {what} do not add up to what there is"]
    over = [name for name, share in shares.items() if not 0 <= share <= limits.capacities[name]]
    if over:
        return [f"certificate: the share of {what} of {', '.join(sorted(over))} is more than it has room for"]
    gifts = _Gifts(groups, limits, scale)
    lacking = {name for name in shares if held[name] < wanted[name]}
    for name in sorted(shares):
        while held[name] > wanted[name]:
            path = gifts.path_from([name], lacking)
            if not path:
                return [f"certificate: the shares of {what} are not possible: too little for {sorted(lacking)}"]
            taker = path[-1][2]
            moved = gifts.give(path, min(held[name] - wanted[name], wanted[taker] - held[taker]))
            held[name] -= moved
            held[taker] += moved
            if held[taker] == wanted[taker]:
                lacking.remove(taker)
    return list(_unfair(what, gifts, limits, weights, shares))


def _unfair(
    what: str,
    gifts: "_Gifts",
    limits: Limits,
    weights: Mapping[NodeId, Fraction],
    shares: Mapping[NodeId, Fraction],
) -> Iterator[str]:
    levels = {name: shares[name] / weights[name] for name in shares if name != NOBODY}
    open_nodes = {name for name in levels if shares[name] < limits.capacities[name]}
    if shares.get(NOBODY) and gifts.path_from([NOBODY], open_nodes):
        yield f"certificate: there is room for more {what} than the shares say"
    for level in sorted(set(levels.values())):
        givers = [name for name in sorted(levels) if levels[name] >= level]
        path = gifts.path_from(givers, {name for name in open_nodes if levels[name] < level})
        if path:
            yield f"certificate: the shares of {what} are not fair: {path[0][1]} could give to {path[-1][2]}"


class _Gifts:
    """The gifts that slots and zones allow between nodes."""

    def __init__(self, groups: Sequence[AlikeSlots], limits: Limits, scale: int) -> None:
        self._groups = groups
        self._zones = limits.zones
        self._room = [group.size * scale for group in groups]
        self._least = scale
        self._flow = [{name: group.held.get(name, 0) * scale for name in group.eligible} for group in groups]
        self._zone_room = [{zone: most * room for zone, most in limits.zone_limits.items()} for room in self._room]
        self._in_zone: list[dict[str, int]] = []
        self._members: list[dict[str, list[NodeId]]] = []
        for flow in self._flow:
            in_zone: dict[str, int] = {}
            members: dict[str, list[NodeId]] = {}
            for name in sorted(flow):
                zone = self._zones[name]
                in_zone[zone] = in_zone.get(zone, 0) + flow[name]
                members.setdefault(zone, []).append(name)
            self._in_zone.append(in_zone)
            self._members.append(members)
        self._of_node: dict[NodeId, list[int]] = {}
        for place, group in enumerate(groups):
            for name in group.eligible:
                self._of_node.setdefault(name, []).append(place)

    def path_from(self, givers: Sequence[NodeId], takers: set[NodeId]) -> list[tuple[int, NodeId, NodeId]]:
        """The shortest path of gifts (group, giver, taker) from a giver to a taker; empty if there is none."""
        came: dict[NodeId, tuple[int, NodeId, NodeId] | None] = dict.fromkeys(givers)
        seen: set[tuple[int, str | None]] = set()
        queue = deque(givers)
        while queue:
            giver = queue.popleft()
            for place in self._of_node.get(giver, ()):
                if self._spare(place, giver) <= 0:
                    continue
                for taker in self._within_reach(place, self._zones[giver], seen):
                    if taker in came or self._flow[place][taker] >= self._room[place]:
                        continue
                    came[taker] = (place, giver, taker)
                    if taker in takers:
                        return _trace(came, taker)
                    queue.append(taker)
        return []

    def _spare(self, place: int, name: NodeId) -> int:
        """The part of a group that a node holds beyond its pins."""
        return self._flow[place][name] - (self._room[place] if name in self._groups[place].pinned else 0)

    def _within_reach(self, place: int, zone: str, seen: set[tuple[int, str | None]]) -> Iterator[NodeId]:
        """The nodes that could take a share of these slots from a node in this zone; each zone is entered once."""
        everywhere = (place, None) not in seen
        if everywhere:
            seen.add((place, None))
        for other, members in self._members[place].items():
            is_open = other == zone or (everywhere and self._in_zone[place][other] < self._zone_room[place][other])
            if is_open and (place, other) not in seen:
                seen.add((place, other))
                yield from members

    def give(self, path: Sequence[tuple[int, NodeId, NodeId]], wanted: int) -> int:
        """Carry out gifts along a path as far as possible, and return the amount."""
        amount = wanted
        for place, giver, taker in path:
            amount = min(amount, self._spare(place, giver), self._room[place] - self._flow[place][taker])
            target = self._zones[taker]
            if target != self._zones[giver]:
                amount = min(amount, self._zone_room[place][target] - self._in_zone[place][target])
        for place, giver, taker in path:
            self._flow[place][giver] -= amount
            self._flow[place][taker] += amount
            self._in_zone[place][self._zones[giver]] -= amount
            self._in_zone[place][self._zones[taker]] += amount
        return amount


def _trace(came: Mapping[NodeId, tuple[int, NodeId, NodeId] | None], end: NodeId) -> list[tuple[int, NodeId, NodeId]]:
    path = []
    step = came[end]
    while step is not None:
        path.append(step)
        step = came[step[1]]
    return path[::-1]

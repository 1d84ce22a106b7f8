"""The limits of a slot table: the number of replicas of each slot, and the bands of the nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.bands import Band, bands_of
from controlplane.core.slots.minimal.indexed import NO_ZONE, IndexedProblem
from controlplane.core.slots.minimal.leaders import NOBODY
from controlplane.core.slots.minimal.matrices import Numbers, Truths
from controlplane.core.slots.minimal.replicas import SlotLimits, ZoneLimit
from controlplane.core.slots.minimal.shares import Room, SlotGroup, fair_shares


@dataclass(frozen=True, slots=True)
class TableLimits:
    """The limits of a table.

    Attributes:
        slots: the limits of each slot.
        unserved: replicas that no node has room for; as many slots have one less than ``slots`` says.
        shares: each node's fair share of replicas.
        bands: each node's band of replicas.
        shortfalls: what was asked for and is impossible, one sentence each.
    """

    slots: SlotLimits
    unserved: int
    shares: tuple[Fraction, ...]
    bands: tuple[Band, ...]
    shortfalls: tuple[str, ...]

    @property
    def units_of_all(self) -> int | None:
        """The number of replicas of every slot that has any; None if slots differ."""
        units = set(np.unique(self.slots.units).tolist()) - {0}
        return units.pop() if len(units) == 1 and not self.unserved else None


def table_limits(asked: IndexedProblem) -> TableLimits:
    """The limits of the table for a problem.

    Every slot gets the replicas asked for, or as many as the nodes (and hard zones) allow. If the nodes' capacities do
    not suffice, slots get the greatest number that all of them can have, and as many as possible get one more.
    """
    rules = asked.problem.rules
    pinned = asked.pinned
    places, patterns = _patterns(asked, pinned)
    sizes = np.bincount(places, minlength=len(patterns)).tolist()
    zone_limits = _zone_limits(asked)
    hard = rules.zone_rule is ZoneRule.HARD
    possible = [_possible(eligible, asked.zones, zone_limits, hard=hard) for eligible, _ in patterns]

    def room_for(level: int) -> Room:
        groups = tuple(
            SlotGroup(size, max(min(level, most), len(pins)), eligible, pins)
            for size, most, (eligible, pins) in zip(sizes, possible, patterns, strict=True)
        )
        capacities = tuple(min(node.capacity or len(places), len(places)) for node in asked.nodes)
        limits = tuple(zone_limits) if hard else (len(asked.nodes),) * len(zone_limits)
        return Room(groups, capacities, asked.zones, limits)

    level = rules.replica_count
    room = room_for(level)
    unserved = room.wanted - room.most()
    while unserved and level > 1:
        lower = room_for(level - 1)
        if lower.wanted == lower.most():
            break
        level, room, unserved = level - 1, lower, lower.wanted - lower.most()
    shares = fair_shares(room, [node.weight for node in asked.nodes])
    units = np.array([group.units for group in room.groups], np.int64)[places]
    zones = None
    if rules.zone_rule is not ZoneRule.IGNORED and any(asked.zones):
        violation = len(places) * rules.replica_count + 1
        node_zones = np.array([*asked.zones, NO_ZONE][: len(asked.zones) + bool(unserved)], np.int64)
        zones = ZoneLimit(node_zones, np.array(zone_limits, np.int64), hard, violation)
    eligible = asked.eligible
    if unserved:
        # A slot that cannot have as many replicas as the others gets all that it can have.
        spare = np.array(possible, np.int64)[places] >= level
        eligible = np.concatenate(
            [np.ones_like(asked.before) if eligible is None else eligible, spare[:, None]], axis=1
        )
        pinned = None if pinned is None else np.concatenate([pinned, np.zeros_like(spare)[:, None]], axis=1)
    bands = bands_of(shares, rules.tolerance_percent, room.pinned, room.most_of_each())
    return TableLimits(
        SlotLimits(units, eligible, pinned, zones),
        unserved,
        tuple(shares),
        (*bands, Band(unserved, unserved)) if unserved else tuple(bands),
        tuple(_shortfalls(asked, units, unserved)),
    )


def leader_shares(
    asked: IndexedProblem, limits: TableLimits, holders: Truths, held: Sequence[int]
) -> tuple[Fraction, ...]:
    """Each node's fair share of slot leaderships, given the holders of each slot and the replicas of each node.

    The result is empty if the shares follow from those of replicas: if all slots have the same number of replicas and
    no leader is pinned, both shares are the same fraction of the total. Otherwise they are as close to that as the
    holders allow, which is the fair share again.
    """
    pinned = asked.pinned_leaders
    if limits.units_of_all is not None and (pinned == NOBODY).all():
        return ()
    places, first = _equal_rows(np.concatenate([holders, pinned[:, None]], axis=1))
    groups = tuple(
        SlotGroup(
            size,
            1,
            frozenset(np.flatnonzero(holders[row]).tolist()),
            frozenset({int(pinned[row])} - {NOBODY}),
        )
        for size, row in zip(np.bincount(places).tolist(), first, strict=True)
        if holders[row].any()
    )
    scale = lcm(*(share.denominator for share in limits.shares))
    weights = [int(share * scale) or 1 for share in limits.shares]
    return tuple(fair_shares(Room(groups, tuple(held), (NO_ZONE,) * len(held), (len(held),)), weights))


def leader_bands(
    asked: IndexedProblem, limits: TableLimits, held: Sequence[int], shares: Sequence[Fraction]
) -> list[Band]:
    """Each node's band of slot leaderships, given its replicas and :func:`leader_shares`."""
    pinned = asked.pinned_leaders
    led = np.bincount(pinned[pinned != NOBODY], minlength=len(held)).tolist()
    units = limits.units_of_all or 1
    fair = shares or [share / units for share in limits.shares]
    return bands_of(fair, asked.problem.rules.tolerance_percent, led, held)


def _patterns(
    asked: IndexedProblem, pinned: Truths | None
) -> tuple[Numbers, list[tuple[frozenset[int], frozenset[int]]]]:
    """Group slots that are alike: the pattern of each slot, and the eligible and pinned nodes of each pattern."""
    everybody = frozenset(range(len(asked.nodes)))
    if asked.eligible is None and pinned is None:
        return np.zeros(len(asked.before), np.int64), [(everybody, frozenset())]
    eligible = np.ones_like(asked.before) if asked.eligible is None else asked.eligible
    must = np.zeros_like(asked.before) if pinned is None else pinned
    places, first = _equal_rows(np.concatenate([eligible, must], axis=1))
    return places, [
        (frozenset(np.flatnonzero(eligible[row]).tolist()), frozenset(np.flatnonzero(must[row]).tolist()))
        for row in first
    ]


def _equal_rows(matrix: Numbers | Truths) -> tuple[Numbers, list[int]]:
    """The kind of each row, numbered in order of first appearance, and the first row of each kind."""
    kinds: dict[bytes, int] = {}
    first: list[int] = []
    places = np.empty(len(matrix), np.int64)
    for row, content in enumerate(matrix):
        kind = kinds.setdefault(content.tobytes(), len(kinds))
        if kind == len(first):
            first.append(row)
        places[row] = kind
    return places, first


def _zone_limits(asked: IndexedProblem) -> list[int]:
    """The number of replicas of a slot that each zone may hold."""
    return [len(asked.nodes) + 1, *[asked.problem.rules.replicas_per_zone] * (len(asked.zone_names) - 1)]


def _possible(eligible: frozenset[int], zones: Sequence[int], zone_limits: Sequence[int], *, hard: bool) -> int:
    """The number of these nodes that can hold one slot together."""
    counts = [0] * len(zone_limits)
    for index in eligible:
        counts[zones[index]] += 1
    return sum(min(count, limit) if hard else count for count, limit in zip(counts, zone_limits, strict=True))


def _shortfalls(asked: IndexedProblem, units: Numbers, unserved: int) -> Iterator[str]:
    rules = asked.problem.rules
    for pin, reason in asked.suspended:
        yield f"slot {pin.slot_id} is pinned to {pin.node_id!r}: {reason}"
    for count in np.unique(units).tolist():
        short = int((units == count).sum())
        if count < rules.replica_count:
            hard = rules.zone_rule is ZoneRule.HARD and any(asked.zones)
            zones = f" in {_counted(len(set(asked.zones)), 'zone')}" if hard else ""
            nodes = _counted(len(asked.nodes), "node") + zones
            why = f"no more fit on {nodes}" if asked.nodes else "no node can hold them"
            yield f"{_slots_have(short)} {count} of {rules.replica_count} replicas: {why}"
    if unserved:
        yield f"{_slots_have(unserved)} one replica less: the nodes' capacities are used up"


def _slots_have(count: int) -> str:
    return f"{_counted(count, 'slot')} {'has' if count == 1 else 'have'}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

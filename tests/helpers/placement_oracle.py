"""The best possible table, found by another solver (HiGHS) and by trying every set of nodes.

It shares nothing with the planner but the problem: shares are found by looking at every set of nodes, least movement
and least leader changes by linear programming.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import ceil, floor

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementProblem
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId

ABSENT = "(nobody)"


@dataclass(frozen=True)
class Optimum:
    """The best that a first stage can reach."""

    zone_violations: int
    moved: int


class Oracle:
    """Everything that is to be known of one problem."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        self.nodes = {node.node_id: node for node in problem.nodes if node.weight}
        self.names = sorted(self.nodes)
        self.hard = problem.rules.zone_rule is ZoneRule.HARD
        self.soft = problem.rules.zone_rule is ZoneRule.SOFT
        barred = {(each.slot_id, each.node_id) for each in problem.exclusions}
        self.eligible = {
            slot.slot_id: frozenset(name for name in self.names if (slot.slot_id, name) not in barred)
            for slot in problem.previous
        }
        self.pins: dict[SlotId, frozenset[NodeId]]
        self.pinned_leaders: dict[SlotId, NodeId]
        self._keep_pins()

    def _keep_pins(self) -> None:
        """The pins that can be had, in order."""
        rules = self.problem.rules
        kept: dict[SlotId, list[NodeId]] = defaultdict(list)
        leaders: dict[SlotId, NodeId] = {}
        on_node: Counter[NodeId] = Counter()
        for pin in sorted(self.problem.pins):
            node, others = self.nodes.get(pin.node_id), kept[pin.slot_id]
            if node is None or pin.node_id not in self.eligible[pin.slot_id] or pin.node_id in others:
                continue
            if len(others) == rules.replica_count or (node.capacity and on_node[pin.node_id] == node.capacity):
                continue
            neighbours = [name for name in others if node.zone and self.nodes[name].zone == node.zone]
            if (self.hard and len(neighbours) == rules.replicas_per_zone) or (pin.leads and pin.slot_id in leaders):
                continue
            others.append(pin.node_id)
            on_node[pin.node_id] += 1
            if pin.leads:
                leaders[pin.slot_id] = pin.node_id
        self.pins = {slot_id: frozenset(names) for slot_id, names in kept.items() if names}
        self.pinned_leaders = leaders

    def zone_limit(self, zone: str) -> int:
        """How many replicas of a slot a zone may hold at the hard rule, or without a violation."""
        limited = zone and self.problem.rules.zone_rule is not ZoneRule.IGNORED
        return self.problem.rules.replicas_per_zone if limited else len(self.names) + 1

    def _zones(self, names: frozenset[NodeId]) -> Counter[str]:
        return Counter(self.nodes[name].zone for name in names)

    @cached_property
    def possible(self) -> dict[SlotId, int]:
        """How many replicas each slot can have."""
        return {
            slot_id: sum(
                min(count, self.zone_limit(zone)) if self.hard else count for zone, count in self._zones(names).items()
            )
            for slot_id, names in self.eligible.items()
        }

    def _units(self, level: int) -> dict[SlotId, int]:
        return {
            slot_id: max(min(level, most), len(self.pins.get(slot_id, ()))) for slot_id, most in self.possible.items()
        }

    def _rank(
        self, patterns: Sequence[tuple[int, int, frozenset[NodeId], frozenset[NodeId]]], among: frozenset[NodeId]
    ) -> int:
        """How many replicas these nodes can hold at most, without their capacities."""
        total = 0
        for size, units, eligible, pinned in patterns:
            free = self._zones((eligible & among) - pinned)
            taken = self._zones(pinned)
            if self.hard:
                most = sum(min(count, self.zone_limit(zone) - taken[zone]) for zone, count in free.items())
            else:
                most = sum(free.values())
            total += size * (len(pinned & among) + min(units - len(pinned), most))
        return total

    def _ranks(
        self,
        units: dict[SlotId, int],
        eligible: dict[SlotId, frozenset[NodeId]],
        pins: dict[SlotId, frozenset[NodeId]],
        capacities: dict[NodeId, int],
    ) -> dict[frozenset[NodeId], int]:
        """The same for every set of nodes, capacities considered."""
        kinds = Counter((units[slot_id], names, pins.get(slot_id, frozenset())) for slot_id, names in eligible.items())
        patterns = [(size, *kind) for kind, size in kinds.items()]
        subsets = [frozenset(each) for each in _subsets(self.names)]
        without = {among: self._rank(patterns, among) for among in subsets}
        capped = [name for name in self.names if capacities[name] < without[frozenset({name})]]
        return {
            among: min(
                without[among - frozenset(left_out)] + sum(capacities[name] for name in left_out)
                for left_out in _subsets([name for name in capped if name in among])
            )
            for among in subsets
        }

    @cached_property
    def _limits(self) -> tuple[dict[SlotId, int], dict[frozenset[NodeId], int], int]:
        slots = len(self.problem.previous)
        capacities = {name: min(node.capacity or slots, slots) for name, node in self.nodes.items()}
        best: tuple[dict[SlotId, int], dict[frozenset[NodeId], int], int] | None = None
        for level in range(self.problem.rules.replica_count, 0, -1):
            units = self._units(level)
            ranks = self._ranks(units, self.eligible, self.pins, capacities)
            best = units, ranks, level
            if ranks[frozenset(self.names)] == sum(units.values()):
                break
            lower = self._units(level - 1)
            if level > 1:
                lower_ranks = self._ranks(lower, self.eligible, self.pins, capacities)
                if lower_ranks[frozenset(self.names)] == sum(lower.values()):
                    break
        assert best is not None, "a slot has one replica at least"
        return best

    @property
    def units(self) -> dict[SlotId, int]:
        """How many replicas each slot is to have."""
        return self._limits[0]

    @property
    def level(self) -> int:
        """How many replicas slots have that could have as many as they want."""
        return self._limits[2]

    @property
    def absent(self) -> int:
        """How many replicas there is no room for."""
        return sum(self.units.values()) - self._limits[1][frozenset(self.names)]

    @cached_property
    def shares(self) -> dict[NodeId, Fraction]:
        """Each node's fair share of replicas."""
        pinned = Counter(name for names in self.pins.values() for name in names)
        return _fair(self._limits[1], {name: node.weight for name, node in self.nodes.items()}, pinned)

    @cached_property
    def bands(self) -> dict[NodeId, tuple[int, int]]:
        """Each node's least and greatest number of replicas."""
        pinned = Counter(name for names in self.pins.values() for name in names)
        may_hold = Counter(name for slot_id, names in self.eligible.items() for name in names if self.units[slot_id])
        room = {name: min(may_hold[name], node.capacity or may_hold[name]) for name, node in self.nodes.items()}
        return self._banded(self.shares, pinned, room)

    def _banded(
        self, shares: dict[NodeId, Fraction], least: Counter[NodeId], room: dict[NodeId, int]
    ) -> dict[NodeId, tuple[int, int]]:
        tolerance = Fraction(self.problem.rules.tolerance_percent, 100)
        bands = {}
        for name, share in shares.items():
            wide = floor(share * (1 - tolerance)), ceil(share * (1 + tolerance))
            bands[name] = (
                min(floor(share), max(wide[0], least[name])),
                max(ceil(share), min(wide[1], room[name])),
            )
        return bands

    def leader_bands(self, after: Sequence[Slot]) -> dict[NodeId, tuple[int, int]]:
        """Each node's least and greatest number of leaderships, given the replica sets."""
        held = Counter(name for slot in after for name in slot.replicas)
        led = Counter(self.pinned_leaders.values())
        units = set(self.units.values()) - {0}
        if len(units) == 1 and not self.absent and not led:
            shares = {name: share / max(units) for name, share in self.shares.items()}
        else:
            holders = {slot.slot_id: frozenset(slot.replicas) for slot in after if slot.replicas}
            pins = {slot_id: frozenset({name}) for slot_id, name in self.pinned_leaders.items()}
            subsets = [frozenset(each) for each in _subsets(self.names)]
            ranks = {
                among: sum(bool(pins.get(slot_id, names) & among) for slot_id, names in holders.items())
                for among in subsets
            }
            shares = _fair(ranks, {name: share or Fraction(1) for name, share in self.shares.items()}, led)
        return self._banded(shares, led, {name: held[name] for name in self.names})

    def least_moved(self) -> Optimum:
        """The fewest violations of soft zones, and then the fewest new replicas."""
        model = _Model()
        violation = len(self.problem.previous) * self.problem.rules.replica_count + 1
        for slot in self.problem.previous:
            row = []
            by_zone: dict[str, list[int]] = defaultdict(list)
            for name in sorted(self.eligible[slot.slot_id]):
                pinned = name in self.pins.get(slot.slot_id, ())
                column = model.variable(int(name not in slot.replicas), int(pinned), 1)
                model.count(name, column)
                row.append(column)
                by_zone[self.nodes[name].zone].append(column)
            if self.absent and self.possible[slot.slot_id] >= self.level:
                column = model.variable(0, 0, 1)
                model.count(ABSENT, column)
                row.append(column)
            model.constrain(row, self.units[slot.slot_id], self.units[slot.slot_id])
            for zone, columns in by_zone.items():
                if self.hard:
                    model.constrain(columns, 0, self.zone_limit(zone))
                elif self.soft and zone:
                    excess = model.variable(violation, 0, len(columns))
                    model.constrain(columns, 0, self.zone_limit(zone), minus=excess)
        cost = model.least({**self.bands, ABSENT: (self.absent, self.absent)})
        return Optimum(cost // violation, cost % violation)

    def least_leader_cost(self, after: Sequence[Slot]) -> int:
        """The least cost of leaders, given the replica sets."""
        model = _Model()
        constant = 0
        for old, new in zip(self.problem.previous, after, strict=True):
            if not new.replicas:
                constant += self.leader_cost(old, new, None)
                continue
            row = []
            for name in new.replicas:
                if self.pinned_leaders.get(new.slot_id) in (None, name):
                    column = model.variable(self.leader_cost(old, new, name), 0, 1)
                    model.count(name, column)
                    row.append(column)
            model.constrain(row, 1, 1)
        return constant + model.least(self.leader_bands(after))

    def leader_cost(self, old: Slot, new: Slot, leader: NodeId | None) -> int:
        """The cost of a leader, in order of weight: passing over all heirs, a change, missing data.

        One number, in which each outweighs all that follow over the whole table.
        """
        if leader == old.leader:
            return 0
        slots = len(self.problem.previous)
        ready = {name for slot_id, name in self.problem.ready if slot_id == new.slot_id}
        heirs = set(old.replicas) & set(new.replicas) if old.leader not in self.nodes else set()
        heirs = heirs & ready or heirs
        change = 2 * slots + 1
        rank = 0 if leader in ready or leader is None else 1 if leader in old.replicas else 2
        return change * (slots + 1) * bool(heirs and leader not in heirs) + change + rank


class _Model:
    """A linear programme under construction; all of them have whole solutions, because they are flows."""

    def __init__(self) -> None:
        self._costs: list[int] = []
        self._bounds: list[tuple[int, int]] = []
        self._rows: list[tuple[list[int], int | None, int, int]] = []
        self._counts: dict[str, list[int]] = defaultdict(list)

    def variable(self, cost: int, least: int, most: int) -> int:
        """A new variable's number."""
        self._costs.append(cost)
        self._bounds.append((least, most))
        return len(self._costs) - 1

    def count(self, name: str, column: int) -> None:
        """Let a variable count for a node."""
        self._counts[name].append(column)

    def constrain(self, columns: list[int], least: int, most: int, minus: int | None = None) -> None:
        """Bound a sum of variables."""
        self._rows.append((columns, minus, least, most))

    def least(self, bands: dict[NodeId, tuple[int, int]]) -> int:
        """The least cost with every node in its band."""
        if not self._costs:
            return 0
        rows = [*self._rows, *((columns, None, *bands[name]) for name, columns in self._counts.items())]
        equal = [row for row in rows if row[2] == row[3]]
        upper = [(columns, minus, 1, most) for columns, minus, least, most in rows if least != most]
        upper += [(columns, None, -1, -least) for columns, _, least, most in rows if least != most and least > 0]
        answer = linprog(
            self._costs,
            bounds=self._bounds,
            **_matrix("eq", [(columns, None, 1, most) for columns, _, _, most in equal], len(self._costs)),
            **_matrix("ub", upper, len(self._costs)),
            method="highs",
        )
        assert answer.success, answer.message
        assert abs(answer.fun - round(answer.fun)) < 1e-4
        least: int = round(answer.fun)
        return least


def _matrix(kind: str, rows: Sequence[tuple[list[int], int | None, int, int]], width: int) -> dict[str, object]:
    if not rows:
        return {}
    places, columns, values = [], [], []
    for place, (members, minus, sign, _) in enumerate(rows):
        for column in members:
            places.append(place)
            columns.append(column)
            values.append(sign)
        if minus is not None:
            places.append(place)
            columns.append(minus)
            values.append(-1)
    shape = (len(rows), width)
    matrix = coo_array((values, (places, columns)), shape=shape).tocsr()
    return {f"A_{kind}": matrix, f"b_{kind}": np.array([row[3] for row in rows])}


def _subsets(names: Sequence[NodeId]) -> list[tuple[NodeId, ...]]:
    return list(chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


def _fair(
    ranks: dict[frozenset[NodeId], int],
    weights: dict[NodeId, int] | dict[NodeId, Fraction],
    least: Counter[NodeId],
) -> dict[NodeId, Fraction]:
    """The shares of all nodes rise together, relative to their weights, until a set of them cannot rise any more."""
    shares: dict[NodeId, Fraction] = {}
    everybody = frozenset(weights)
    while shares.keys() != everybody:
        done = frozenset(shares)
        fixed = sum(shares.values(), Fraction(0))
        levels = {
            among: _highest(ranks[among | done] - fixed, sorted(among), weights, least)
            for among in ranks
            if among and not among & done
        }
        level = min(levels.values())
        stopped = frozenset().union(*(among for among, own in levels.items() if own == level))
        for name in stopped:
            shares[name] = max(Fraction(least[name]), level * Fraction(weights[name]))
    return shares


def _highest(
    target: Fraction,
    names: Sequence[NodeId],
    weights: dict[NodeId, int] | dict[NodeId, Fraction],
    least: Counter[NodeId],
) -> Fraction:
    """The highest level at which these nodes hold no more than ``target``."""
    edges = sorted({Fraction(least[name]) / Fraction(weights[name]) for name in names})
    found = edges[0]
    for edge in edges:
        rising = [name for name in names if least[name] <= edge * weights[name]]
        rest = sum(least[name] for name in names if name not in rising)
        level = (target - rest) / sum((Fraction(weights[name]) for name in rising), Fraction(0))
        if level < edge:
            break
        found = level
    return found

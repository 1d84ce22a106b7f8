"""The rules of a problem for the verifier, derived from the problem without the planner's code."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter, is_not
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import NodeId, SlotId

Matrix: TypeAlias = NDArray[np.bool_]
Vector: TypeAlias = NDArray[np.int64]

UNKNOWN = -1
"""Stands for no node, or for a node that may hold nothing."""


@dataclass(frozen=True)
class Table:
    """A slot table by index of slot and of usable node.

    Attributes:
        slots: its rows.
        leaders: each slot's leader, or ``UNKNOWN``.
        holds: matrix of slots by usable nodes: the holders.
        sizes: number of holders that each row names, including unusable nodes.
        leader_epochs: leader epoch of each slot.
        names: names of the slots' leaders.
        disordered: whether a row's followers are not sorted.
    """

    slots: Sequence[Slot]
    leaders: Vector
    holds: Matrix
    sizes: Vector
    leader_epochs: Vector
    names: list[NodeId | None]
    disordered: Matrix

    @cached_property
    def cells(self) -> tuple[Vector, Vector]:
        """The holders as rows and indexes of nodes, row by row."""
        return cells(self.holds)

    @cached_property
    def held_sizes(self) -> Vector:
        """Number of each row's holders that are usable nodes."""
        return np.bincount(self.cells[0], minlength=len(self.slots))

    @classmethod
    def of(cls, slots: Sequence[Slot], places: Mapping[NodeId, int]) -> "Table":
        """The table of these rows, with these nodes as the usable ones."""
        count, width = len(slots), len(places)
        names = list(map(attrgetter("leader"), slots))
        followers = list(map(attrgetter("followers"), slots))
        lengths = np.fromiter(map(len, followers), np.int64, count)
        columns = np.fromiter(map(places.get, chain.from_iterable(followers), repeat(width)), np.int64, lengths.sum())
        leaders = np.fromiter(map(places.get, names, repeat(width)), np.int64, count)
        holds = np.zeros((count, width + 1), np.bool_)
        holds[np.repeat(np.arange(count), lengths), columns] = True
        holds[np.arange(count), leaders] = True
        leaders[leaders == width] = UNKNOWN
        led = np.fromiter(map(bool, names), np.bool_, count)
        epochs = np.fromiter(map(attrgetter("leader_epoch"), slots), np.int64, count)
        rows = np.repeat(np.arange(count), lengths)
        disordered = np.zeros(count, np.bool_)
        disordered[rows[1:][(np.diff(columns) <= 0) & (np.diff(rows) == 0)]] = True
        return cls(slots, leaders, holds[:, :width], lengths + led, epochs, names, disordered)

    def changed_to(self, slots: Sequence[Slot], places: Mapping[NodeId, int]) -> "Table":
        """The table of these rows; only rows that are not identical objects in this table are examined."""
        other = np.flatnonzero(np.fromiter(map(is_not, self.slots, slots), np.bool_, len(slots)))
        new = Table.of([slots[row] for row in other.tolist()], places)
        changed = Table(
            slots,
            self.leaders.copy(),
            self.holds.copy(),
            self.sizes.copy(),
            self.leader_epochs.copy(),
            list(self.names),
            self.disordered.copy(),
        )
        changed.leaders[other], changed.holds[other], changed.sizes[other] = new.leaders, new.holds, new.sizes
        changed.leader_epochs[other], changed.disordered[other] = new.leader_epochs, new.disordered
        for row, name in zip(other.tolist(), new.names, strict=True):
            changed.names[row] = name
        return changed


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that a table has to obey.

    Attributes:
        problem: the problem.
        nodes: the nodes that may hold slots, by name.
        places: names to indexes.
        zones: each node's zone by index, 0 for none; all 0 if zones do not matter.
        zone_limits: for each zone, the most replicas of one slot.
        eligible: matrix of slots by nodes: the possible holders; None if every node may hold every slot.
        pins: by slot id, the nodes that have to hold the slot, and the one that has to lead it or None.
        possible: the most replicas that each slot can have.
    """

    problem: PlacementProblem
    nodes: tuple[PlacementNode, ...]
    places: Mapping[NodeId, int]
    zones: Vector
    zone_limits: Vector
    eligible: Matrix | None
    pins: Mapping[SlotId, tuple[frozenset[NodeId], NodeId | None]]
    possible: Vector

    @classmethod
    def of(cls, problem: PlacementProblem) -> "Rules":
        """The rules of a problem."""
        nodes = tuple(sorted((node for node in problem.nodes if node.weight), key=attrgetter("node_id")))
        places = {node.node_id: place for place, node in enumerate(nodes)}
        zoned = problem.rules.zone_rule is not ZoneRule.IGNORED
        numbers: dict[str, int] = {"": 0}
        zones = np.array([numbers.setdefault(node.zone if zoned else "", len(numbers)) for node in nodes], np.int64)
        limits = np.full(len(numbers), problem.rules.replicas_per_zone, np.int64)
        limits[0] = len(nodes) + 1
        eligible = None
        excluded = [each for each in problem.exclusions if each.node_id in places]
        if excluded:
            eligible = np.ones((len(problem.previous), len(nodes)), np.bool_)
            row_of = {slot.slot_id: row for row, slot in enumerate(problem.previous)}
            for each in excluded:
                eligible[row_of[each.slot_id], places[each.node_id]] = False
        possible = cls._possible(problem, zones, limits, eligible)
        pins = dict(_held_pins(problem, {node.node_id: node for node in nodes}))
        return cls(problem, nodes, places, zones, limits, eligible, pins, possible)

    @property
    def pinned_counts(self) -> Vector:
        """Number of pins of each slot."""
        counts = np.zeros(len(self.problem.previous), np.int64)
        if self.pins:
            counts[:] = [
                len(self.pins[slot.slot_id][0]) if slot.slot_id in self.pins else 0 for slot in self.problem.previous
            ]
        return counts

    @staticmethod
    def _possible(problem: PlacementProblem, zones: Vector, limits: Vector, eligible: Matrix | None) -> Vector:
        count = len(problem.previous)
        allowed = np.ones((1, len(zones)), np.bool_) if eligible is None else eligible
        by_zone = count_by_zone(allowed, zones, len(limits))
        if problem.rules.zone_rule is ZoneRule.HARD:
            by_zone = np.minimum(by_zone, limits)
        return np.broadcast_to(by_zone.sum(axis=1), (count,)).astype(np.int64)

    def level(self, sizes: Vector) -> int:
        """The number of replicas of slots in this table that can have as many and have room.

        If room is short, some slots have one less, from which the number follows.
        """
        wanted = self.problem.rules.replica_count
        short = sizes[sizes < np.minimum(self.possible, wanted)]
        return int(short.min()) + 1 if len(short) else wanted


def cells(matrix: Matrix) -> tuple[Vector, Vector]:
    """The rows and columns of the true cells, row by row; several times as fast as :func:`numpy.nonzero`."""
    rows, columns = np.divmod(np.flatnonzero(matrix), max(matrix.shape[1], 1))
    return rows, columns


def count_by_zone(chosen: Matrix, zones: Vector, zone_count: int) -> Vector:
    """For each row, the number of chosen nodes in each zone."""
    rows, columns = cells(chosen)
    counts = np.bincount(rows * zone_count + zones[columns], minlength=len(chosen) * zone_count)
    return counts.reshape(len(chosen), zone_count)


def _held_pins(
    problem: PlacementProblem, usable: Mapping[NodeId, PlacementNode]
) -> Iterator[tuple[SlotId, tuple[frozenset[NodeId], NodeId | None]]]:
    """The pins of each slot that can be kept, examined in order until a rule forbids one more."""
    rules = problem.rules
    barred = {(each.slot_id, each.node_id) for each in problem.exclusions}
    on_node: Counter[NodeId] = Counter()
    by_slot: dict[SlotId, dict[NodeId, bool]] = {}
    for pin in sorted(set(problem.pins)):
        slot = by_slot.setdefault(pin.slot_id, {})
        node = usable.get(pin.node_id)
        if node is None or (pin.slot_id, pin.node_id) in barred or pin.node_id in slot:
            continue
        in_zone = sum(usable[name].zone == node.zone for name in slot)
        zone_full = rules.zone_rule is ZoneRule.HARD and node.zone and in_zone >= rules.replicas_per_zone
        node_full = node.capacity and on_node[pin.node_id] >= node.capacity
        if len(slot) >= rules.replica_count or zone_full or node_full or (pin.leads and any(slot.values())):
            continue
        slot[pin.node_id] = pin.leads
        on_node[pin.node_id] += 1
    for slot_id, slot in by_slot.items():
        if slot:
            yield slot_id, (frozenset(slot), next((name for name, leads in slot.items() if leads), None))

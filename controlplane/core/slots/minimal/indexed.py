"""A placement problem in numbers: nodes and slots as indexes, and holders as a matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter

import numpy as np

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem
from controlplane.core.slots.minimal.leaders import NOBODY
from controlplane.core.slots.minimal.matrices import Numbers, Truths, count_by_row
from controlplane.core.slots.pins import Pin
from controlplane.core.values.identifiers import NodeId, SlotId

NO_ZONE = 0
"""The index of the zone for all nodes without one; it has no limit."""


@dataclass(frozen=True)
class IndexedProblem:
    """A placement problem by index of slot (row of the table) and of node (position among the usable ones, by name).

    Attributes:
        problem: the original problem.
        nodes: the nodes that may hold slots, by name.
        indexes: names to indexes.
        before: matrix of slots by nodes: the holders before.
        holders_before: number of holders of each slot before, including those that are gone.
        leaders: each slot's leader, ``NOBODY`` if it has none among the nodes.
        zones: each node's zone; all ``NO_ZONE`` if zones do not matter.
        zone_names: names of zones, by index.
        eligible: matrix of slots by nodes: the possible holders; None if every node may hold every slot.
        pins: the pins that can be kept now.
        suspended: the other pins, with the reason.
    """

    problem: PlacementProblem
    nodes: tuple[PlacementNode, ...]
    indexes: Mapping[NodeId, int]
    before: Truths
    holders_before: Numbers
    leaders: Numbers
    zones: tuple[int, ...]
    zone_names: tuple[str, ...]
    eligible: Truths | None
    pins: tuple[Pin, ...]
    suspended: tuple[tuple[Pin, str], ...]

    @cached_property
    def living_holders(self) -> Numbers:
        """Number of the nodes that held each slot."""
        return count_by_row(self.before)

    @cached_property
    def pinned(self) -> Truths | None:
        """Matrix of slots by nodes: the pinned holders; None without pins."""
        if not self.pins:
            return None
        pinned = np.zeros(self.before.shape, np.bool_)
        pinned[self._cells(self.pins)] = True
        return pinned

    @cached_property
    def pinned_leaders(self) -> Numbers:
        """The node that has to lead each slot, or ``NOBODY``."""
        leaders = np.full(len(self.before), NOBODY, np.int64)
        rows, columns = self._cells([pin for pin in self.pins if pin.leads])
        leaders[rows] = columns
        return leaders

    @cached_property
    def ready(self) -> Truths:
        """Matrix of slots by nodes: the replicas that report to have all the data."""
        ready = np.zeros(self.before.shape, np.bool_)
        rows = self._rows if self.problem.ready else {}
        known = [
            (row, index)
            for slot_id, node_id in self.problem.ready
            if (row := rows.get(slot_id)) is not None and (index := self.indexes.get(node_id)) is not None
        ]
        if known:
            ready[tuple(np.array(known).T)] = True
        return ready

    @cached_property
    def _rows(self) -> Mapping[SlotId, int]:
        """Slot ids to indexes."""
        return dict(zip(map(attrgetter("slot_id"), self.problem.previous), range(len(self.before)), strict=True))

    def _cells(self, pins: Sequence[Pin]) -> tuple[Numbers, Numbers]:
        rows = self._rows if pins else {}
        return (
            np.array([rows[pin.slot_id] for pin in pins], np.int64),
            np.array([self.indexes[pin.node_id] for pin in pins], np.int64),
        )


def index_problem(problem: PlacementProblem) -> IndexedProblem:
    """Convert a problem into numbers."""
    nodes = tuple(sorted((node for node in problem.nodes if node.weight > 0), key=lambda node: node.node_id))
    indexes = {node.node_id: index for index, node in enumerate(nodes)}
    previous = problem.previous
    slot_count, width = len(previous), len(nodes)
    names = list(map(attrgetter("leader"), previous))
    leaders = np.fromiter(map(indexes.get, names, repeat(NOBODY)), np.int64, slot_count)
    has_leader = leaders != NOBODY
    for row in np.flatnonzero(~has_leader).tolist():
        has_leader[row] = names[row] is not None
    followers = list(map(attrgetter("followers"), previous))
    lengths = np.fromiter(map(len, followers), np.int64, slot_count)
    columns = np.fromiter(map(indexes.get, chain.from_iterable(followers), repeat(NOBODY)), np.int64, lengths.sum())
    before = np.zeros((slot_count, width + 1), np.bool_)  # the last column collects holders that are gone
    before[np.repeat(np.arange(slot_count), lengths), columns] = True
    before[np.arange(slot_count), leaders] = True
    before = np.ascontiguousarray(before[:, :width])
    zone_names, zones = _zones(problem, nodes)
    eligible = None
    excluded = [each for each in problem.exclusions if each.node_id in indexes]
    if excluded:
        rows = {slot.slot_id: row for row, slot in enumerate(previous)}
        barred = [(rows[each.slot_id], indexes[each.node_id]) for each in excluded]
        eligible = np.ones(before.shape, np.bool_)
        eligible[tuple(np.array(barred).T)] = False
    pins, suspended = _sort_out_pins(problem, indexes, zones)
    return IndexedProblem(
        problem=problem,
        nodes=nodes,
        indexes=indexes,
        before=before,
        holders_before=lengths + has_leader,
        leaders=leaders,
        zones=zones,
        zone_names=zone_names,
        eligible=eligible,
        pins=pins,
        suspended=suspended,
    )


def _zones(problem: PlacementProblem, nodes: Sequence[PlacementNode]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    if problem.rules.zone_rule is ZoneRule.IGNORED:
        return ("",), (NO_ZONE,) * len(nodes)
    names = ("", *sorted({node.zone for node in nodes} - {""}))
    places = {name: place for place, name in enumerate(names)}
    return names, tuple(places[node.zone] for node in nodes)


def _sort_out_pins(
    problem: PlacementProblem, indexes: Mapping[NodeId, int], zones: Sequence[int]
) -> tuple[tuple[Pin, ...], tuple[tuple[Pin, str], ...]]:
    """The pins that can be kept, examined in order, and the others with the reason."""
    rules = problem.rules
    barred = {(each.slot_id, each.node_id) for each in problem.exclusions}
    capacities = {node.node_id: node.capacity or len(problem.previous) for node in problem.nodes}
    of_slot: dict[SlotId, list[Pin]] = {}
    of_node: dict[NodeId, int] = {}
    suspended = []
    for pin in sorted(set(problem.pins)):
        others = of_slot.setdefault(pin.slot_id, [])
        index = indexes.get(pin.node_id)
        same_zone = [each for each in others if index is not None and zones[indexes[each.node_id]] == zones[index]]
        if index is None:
            reason = "it is not there to hold anything"
        elif (pin.slot_id, pin.node_id) in barred:
            reason = "it is excluded from the slot"
        elif any(each.node_id == pin.node_id for each in others):
            reason = "it is pinned there twice"
        elif len(others) >= rules.replica_count:
            reason = f"the slot has {rules.replica_count} replicas, which are pinned already"
        elif of_node.get(pin.node_id, 0) >= capacities[pin.node_id]:
            reason = f"its capacity is {capacities[pin.node_id]}"
        elif rules.zone_rule is ZoneRule.HARD and zones[index] and len(same_zone) >= rules.replicas_per_zone:
            reason = "its zone holds as many pinned replicas of the slot as it may"
        elif pin.leads and any(each.leads for each in others):
            reason = "another node is pinned to lead the slot"
        else:
            others.append(pin)
            of_node[pin.node_id] = of_node.get(pin.node_id, 0) + 1
            continue
        suspended.append((pin, reason))
    return tuple(pin for pins in of_slot.values() for pin in pins), tuple(suspended)

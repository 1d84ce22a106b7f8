"""The placement rule of Databricks' Dicer, open version 1.0.0, on a table of equal slots with equal loads.

Dicer deals slices of the key space, which it splits and merges; slots stay whole, so only its constraint and placement
phases are here. Replicas of dead nodes go to the coldest ones; then the hottest node gives replicas away as long as
that lowers the cost: of being outside a band of ten percent around the mean, and a quarter of the load of what moves. A
node that was not there before has to be filled to the mean. Nodes that cannot lower the cost are left out for good.

Dicer knows no leaders; here the longest holder leads. It takes any of equal moves; here the first by number and name.
"""

from collections.abc import Sequence
from typing import Final

from benchmarks.placers.contract import Table, empty_table
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.values.identifiers import NodeId

_TOLERANCE: Final = 0.1
_UNDERSHOOT: Final = 4.0
_OVERSHOOT: Final = 16.0
_EMPTY: Final = 100.0
_CHURN: Final = 0.25
_LEAST_GAIN: Final = 1e-10


class Dicer:
    """Greedy local search from the hottest node, with a price on movement."""

    name = "Dicer's rule"
    heeds_weights = False
    heeds_zones = False

    def __init__(self, slot_count: int, replica_count: int) -> None:
        self._table = empty_table(slot_count)
        self._replica_count = replica_count

    def place(self, nodes: Sequence[PlacementNode]) -> Sequence[Table]:
        """See :class:`benchmarks.placers.contract.Placer`."""
        names = [node.node_id for node in nodes]
        if not any(self._table):
            self._table = self._dealt(names)
            return [self._table]
        search = Search(self._table, names, self._replica_count)
        search.fill_up()
        search.improve()
        self._table = search.table()
        return [self._table]

    def _dealt(self, names: Sequence[NodeId]) -> Table:
        """The first table: replicas dealt to the nodes in turn."""
        replicas = self._replica_count
        return tuple(
            tuple(names[(slot_id * replicas + replica) % len(names)] for replica in range(replicas))
            for slot_id in range(len(self._table))
        )


class Search:
    """A table under construction; the load of a node is its number of replicas."""

    def __init__(self, before: Table, names: Sequence[NodeId], replica_count: int) -> None:
        self._names = names
        self._replica_count = replica_count
        self._base = [set(holders).intersection(names) for holders in before]
        self._holders = [
            [node_id for node_id in holders if node_id in self._base[slot_id]] for slot_id, holders in enumerate(before)
        ]
        self._held: dict[NodeId, set[int]] = {name: set() for name in names}
        for slot_id, holders in enumerate(self._holders):
            for node_id in holders:
                self._held[node_id].add(slot_id)
        mean = len(before) * replica_count / len(names)
        known = set().union(*before)
        self._least = {name: mean * (1 - _TOLERANCE) if name in known else mean for name in names}
        self._most = mean * (1 + _TOLERANCE)

    def fill_up(self) -> None:
        """The constraint phase: in order of the slots, missing replicas to the coldest nodes."""
        for slot_id, holders in enumerate(self._holders):
            while len(holders) < self._replica_count:
                free = [name for name in self._names if name not in holders]
                coldest = min(free, key=lambda name: (len(self._held[name]), name))
                holders.append(coldest)
                self._held[coldest].add(slot_id)

    def improve(self) -> None:
        """The placement phase."""
        giving = list(self._names)
        while giving:
            hottest = max(giving, key=lambda name: len(self._held[name]))
            gain, slot_id, taker = self._best_move(hottest)
            if gain >= -_LEAST_GAIN:
                giving.remove(hottest)
                continue
            self._holders[slot_id][self._holders[slot_id].index(hottest)] = taker
            self._held[hottest].remove(slot_id)
            self._held[taker].add(slot_id)

    def table(self) -> Table:
        """The table. Former holders of a slot come first, in their former order."""
        return tuple(
            (*(name for name in holders if name in base), *(name for name in holders if name not in base))
            for holders, base in zip(self._holders, self._base, strict=True)
        )

    def _best_move(self, giver: NodeId) -> tuple[float, int, NodeId]:
        """The change of cost, the slot and the taker of the move that lowers the cost most."""
        relief = self._step(giver, -1)
        burden = {name: self._step(name, 1) for name in self._names if name != giver}
        best = (0.0, 0, giver)
        for taker in sorted(burden, key=burden.__getitem__):
            if relief + burden[taker] - _CHURN > best[0]:
                break  # also a move that earned its price back would be no better, and those after it cost more
            free = self._held[giver].difference(self._held[taker])
            costs = ((relief + burden[taker] + self._churn(slot_id, giver, taker), slot_id, taker) for slot_id in free)
            best = min(best, min(costs, default=best))
        return best

    def _churn(self, slot_id: int, giver: NodeId, taker: NodeId) -> float:
        """The price of leaving a slot held before, which is refunded for returning to one."""
        base = self._base[slot_id]
        return _CHURN * ((giver in base) - (taker in base))

    def _step(self, name: NodeId, change: int) -> float:
        """How the cost of a node's load changes with one replica more or less."""
        load = len(self._held[name])
        return self._cost(name, load + change) - self._cost(name, load)

    def _cost(self, name: NodeId, load: int) -> float:
        least, most = self._least[name], self._most
        if load == 0:
            return _EMPTY * most
        if load < least:
            return _UNDERSHOOT * (1 + (least - load) / least) ** 2 * (least - load)
        if load > most:
            return _OVERSHOOT * (load / most) ** 2 * (load - most)
        return 0.0

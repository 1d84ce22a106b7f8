"""Which searches are run, and what they have to have seen between them."""

from typing import Final, NamedTuple, TypeAlias

from tests.exploration import handoff_search
from tests.exploration.any_lease import TurnUnderAnyLease
from tests.exploration.handoff_rows import rows_of_bundles, rows_of_slots
from tests.exploration.handoff_search import ORDERS
from tests.exploration.node_search import search
from tests.exploration.nodes import Nodes
from tests.exploration.rows import rows_of_controllers, rows_of_nodes
from tests.exploration.search import Explorer, Found, Start

_MORE_THAN_THERE_ARE: Final = 1_000


class ControllerSearch(NamedTuple):
    """So many controllers, where they begin, and how many turns they take between them."""

    controllers: int
    start: Start
    depth: int

    def __str__(self) -> str:
        """As it is told."""
        return f"{self.controllers} controllers, {self.start.value}, every order of {self.depth} turns"

    def run(self) -> Found:
        """Look at every world."""
        return Explorer(self.controllers).search(self.start, depth=self.depth)


class AnyLeaseSearch(NamedTuple):
    """So many controllers under a lease that says anything at any time, and no end but that of all worlds."""

    controllers: int

    def __str__(self) -> str:
        """As it is told."""
        return f"{self.controllers} controllers under any lease, every order of any number of turns"

    def run(self) -> Found:
        """Look at every world."""
        return Explorer(self.controllers, TurnUnderAnyLease).search(Start.COLD, depth=_MORE_THAN_THERE_ARE)


class NodeSearch(NamedTuple):
    """So many nodes with one slot between them, what else becomes of them, and how many steps there are."""

    nodes: int
    in_all_ways: bool
    depth: int

    def __str__(self) -> str:
        """As it is told."""
        also = ", also drained, leaving and superseded" if self.in_all_ways else ""
        return f"{self.nodes} nodes and a slot{also}, every order of {self.depth} steps"

    def run(self) -> Found:
        """Look at every world."""
        return search(Nodes(self.nodes, in_all_ways=self.in_all_ways), depth=self.depth)


class HandoffSearch(NamedTuple):
    """What is ordered with three nodes, and how many steps there are."""

    order: str
    depth: int

    def __str__(self) -> str:
        """As it is told."""
        return f"3 nodes, and {self.order}, every order of {self.depth} steps"

    def run(self) -> Found:
        """Look at every world."""
        return handoff_search.search(ORDERS[self.order](), depth=self.depth)


Search: TypeAlias = ControllerSearch | AnyLeaseSearch | NodeSearch | HandoffSearch

SEARCHES: tuple[Search, ...] = (
    ControllerSearch(2, Start.COLD, 14),
    ControllerSearch(2, Start.CONTESTED, 13),
    ControllerSearch(3, Start.CONTESTED, 9),
    AnyLeaseSearch(2),
    NodeSearch(1, in_all_ways=True, depth=9),
    NodeSearch(2, in_all_ways=False, depth=8),
    HandoffSearch("a bundle is transferred", 5),
    HandoffSearch("a bundle is unloaded", 4),
    HandoffSearch("a bundle is split by number", 4),
    HandoffSearch("a bundle is split by its owner", 4),
    HandoffSearch("a namespace is deleted", 4),
    HandoffSearch("a leadership moves with a copy", 5),
    HandoffSearch("a leadership moves in sync", 4),
)
"""Enough for every row of the tables."""
SHALLOW_SEARCHES: Final[tuple[Search, ...]] = (
    ControllerSearch(2, Start.COLD, 12),
    ControllerSearch(2, Start.CONTESTED, 11),
    ControllerSearch(3, Start.CONTESTED, 7),
    NodeSearch(1, in_all_ways=True, depth=8),
    NodeSearch(2, in_all_ways=False, depth=7),
    HandoffSearch("a bundle is transferred", 4),
    HandoffSearch("a bundle is unloaded", 3),
    HandoffSearch("a bundle is split by number", 3),
    HandoffSearch("a bundle is split by its owner", 3),
    HandoffSearch("a namespace is deleted", 3),
    HandoffSearch("a leadership moves with a copy", 4),
    HandoffSearch("a leadership moves in sync", 3),
)
"""Quick enough for every change: those that end, a step or two less deep."""


def rows_of_tables() -> set[str]:
    """Every row of the transition tables of election, leading, node session and handoffs.

    That of the election under lease profile ``sofa`` is compared with SOFARegistry's own loop instead.
    """
    return rows_of_controllers() | rows_of_nodes() | rows_of_bundles() | rows_of_slots()


def unused_rows(found: list[Found]) -> list[str]:
    """The rows of the transition tables that no search has used."""
    return sorted(rows_of_tables().difference(*(one.rows for one in found)))

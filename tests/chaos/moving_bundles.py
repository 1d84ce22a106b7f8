"""Bundles that move all the time under chaos, what became of their orders, and who would have served them when."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.config import HEARTBEATS
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import NodeId
from tests.chaos.bundle_orders import BundleOrders
from tests.chaos.order_verdicts import OrderVerdict, judge_orders, judge_tables, unanswered, unowned
from tests.chaos.overlap_verdicts import OverlapVerdict, judge_overlaps
from tests.chaos.overlaps import find_overlaps
from tests.chaos.served import Coverage, read_folder
from tests.chaos.watched_node import NAMESPACES
from tests.helpers.fencing_bounds import Bounds
from tests.kills.cluster import KvCluster


@dataclass(slots=True)
class Moves:
    """What a look has shown.

    Attributes:
        orders: what became of the orders.
        overlaps: what became of the overlaps.
        coverage: how closely each process was watched.
        servings: how many times a process began to serve something that was watched.
        broken: promises that were not kept, a sentence each.
    """

    orders: OrderVerdict = field(default_factory=OrderVerdict)
    overlaps: OverlapVerdict = field(default_factory=lambda: OverlapVerdict((), ()))
    coverage: list[Coverage] = field(default_factory=list)
    servings: int = 0
    broken: list[str] = field(default_factory=list)


class MovingBundles:
    """Orders of bundles, and the judge of what comes of them. A context manager: leaving ends the orders.

    Args:
        cluster: its nodes are watched ones.
        served: the folder into which they write.
        brokers: their number, on which the bounds depend.
        nodes: where bundles may be ordered to.
        chance: chooses the orders.
    """

    def __init__(
        self, cluster: KvCluster, served: Path, brokers: int, nodes: Sequence[NodeId], chance: random.Random
    ) -> None:
        self._cluster = cluster
        self._served = served
        self._bounds = Bounds(brokers)
        self._orders = BundleOrders(cluster, NAMESPACES, nodes, chance)
        self._tables_judged = 0

    def __enter__(self) -> Self:
        """Begin to order."""
        self._orders.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        self._orders.__exit__(kind, error, traceback)

    def unload_all(self) -> None:
        """Have every bundle moved now, because something has just gone wrong."""
        self._orders.unload_all()

    def end(self) -> None:
        """Order nothing any more, and wait until every order has come to its end, and every bundle has its owner.

        Raises:
            AssertionError: that takes too long.
        """
        self._orders.stop()
        self._cluster.wait_until(self._is_over, "every order of bundles answered and ended, and every bundle owned")

    def look(self, decisions: Sequence[Decision]) -> Moves:
        """Judge everything up to the end of the log."""
        tables = self._cluster.real.tables()
        servings, coverage = [], []
        for of_process, covered in read_folder(self._served):
            servings += of_process
            coverage.append(covered)
        overlaps = find_overlaps(servings)
        # After the servings: what they show was committed before.
        heartbeats = self._cluster.real.records(HEARTBEATS) if overlaps else []
        judged = judge_overlaps(overlaps, self._cluster.real.decisions() if overlaps else (), heartbeats, self._bounds)
        orders = judge_orders(self._orders.acknowledged, len(self._orders.unacknowledged), decisions)
        broken = [*orders.wrong, *judge_tables(tables[self._tables_judged :]), *judged.wrong]
        self._tables_judged = len(tables)
        return Moves(orders, judged, coverage, len(servings), broken)

    def _is_over(self) -> bool:
        decisions = self._cluster.real.decisions()
        orders = judge_orders(self._orders.acknowledged, 0, decisions)
        table = self._cluster.real.tables()[-1]
        return not orders.standing and not unanswered(self._orders.acknowledged, decisions) and not unowned(table)

"""Reports of a process that another one of its node has replaced: they count for nothing.

A report counts if no report of a later incarnation of its node that counts for the node stands before it. A node has
one incarnation in almost every batch, so the rule is decided from one summary for each node and incarnation.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from controlplane.core.bundles.load.reported_state import NodeState, Position


class IncarnationReports(NamedTuple):
    """The reports of one incarnation of a node in a batch, in one partition.

    A node's reports stand in one partition, unless the topic gets more of them.

    Attributes:
        node_id: the node.
        incarnation: the run of its process.
        first: the place of the first report whose figures of the node can be true; None if there is none.
        newest: the node with the newest such report, without what evaluations add; None likewise.
    """

    node_id: str
    incarnation: int
    first: Position | None
    newest: NodeState | None


class Cutoff(NamedTuple):
    """Until where the reports of an incarnation count: those before ``end``, none if it is None."""

    node_id: str
    incarnation: int
    end: Position | None


def cutoffs(batch: Iterable[IncarnationReports], nodes: Mapping[str, NodeState]) -> list[Cutoff]:
    """The incarnations of which not every report of the batch counts.

    Args:
        batch: every incarnation in the batch.
        nodes: the nodes before it.
    """
    by_node: dict[str, list[IncarnationReports]] = {}
    for each in batch:
        by_node.setdefault(each.node_id, []).append(each)
    found: list[Cutoff] = []
    for node_id, mine in by_node.items():
        known = nodes.get(node_id)
        end: Position | None = None
        latest_first = sorted(mine, key=attrgetter("incarnation"), reverse=True)
        for incarnation, parts in groupby(latest_first, key=attrgetter("incarnation")):
            if known is not None and incarnation < known.incarnation:
                found.append(Cutoff(node_id, incarnation, None))
                continue
            if end is not None:
                found.append(Cutoff(node_id, incarnation, end))
            for first in (each.first for each in parts if each.first is not None):
                end = first if end is None or end.is_behind(first) else end
    return found


def newest_nodes(batch: Iterable[IncarnationReports]) -> Collection[NodeState]:
    """Each node by the newest report of its latest incarnation that has one: later ones of former ones do not count."""
    found: dict[str, NodeState] = {}
    for newest in sorted((each.newest for each in batch if each.newest is not None), key=attrgetter("incarnation")):
        other = found.get(newest.node_id)
        if other is None or newest.incarnation > other.incarnation or newest.position.is_behind(other.position):
            found[newest.node_id] = newest
    return found.values()

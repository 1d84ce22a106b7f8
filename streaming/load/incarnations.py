"""Reports of a process that another one of its node has replaced: they count for nothing.

A report counts if no report of a later incarnation of its node that counts for the node stands before it. A node has
one incarnation in almost every batch, so that the rule is decided from one row for each node and incarnation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from streaming.load.rows import NodeState, Position

_POSITION: Final = "append_time_ms: long, partition: int, offset: long"


class Run(NamedTuple):
    """The reports of one incarnation of a node in a batch.

    Attributes:
        node_id: the node.
        incarnation: the run of its process.
        first: the place of the first report whose node row can be true; None if there is none.
        newest: the node with the newest such report, counting or not, without what evaluations add; None likewise.
    """

    node_id: str
    incarnation: int
    first: Position | None
    newest: NodeState | None


class Limit(NamedTuple):
    """Until where the reports of an incarnation count: those before ``end``, none if it is None."""

    node_id: str
    incarnation: int
    end: Position | None


def limits(runs: Iterable[Run], nodes: Mapping[str, NodeState]) -> list[Limit]:
    """The incarnations of which not every report of the batch counts.

    Args:
        runs: every incarnation in the batch.
        nodes: the nodes before it.
    """
    by_node: dict[str, list[Run]] = {}
    for run in runs:
        by_node.setdefault(run.node_id, []).append(run)
    found: list[Limit] = []
    for node_id, mine in by_node.items():
        known = nodes.get(node_id)
        end: Position | None = None
        for run in sorted(mine, key=lambda each: each.incarnation, reverse=True):
            if known is not None and run.incarnation < known.incarnation:
                found.append(Limit(node_id, run.incarnation, None))
                continue
            if end is not None:
                found.append(Limit(node_id, run.incarnation, end))
            if run.first is not None:
                end = run.first if end is None else min(end, run.first)
    return found


def newest_nodes(runs: Iterable[Run]) -> Iterable[NodeState]:
    """Each node by the newest report of its latest incarnation that has one: later ones of former ones do not count."""
    found: dict[str, NodeState] = {}
    for run in sorted(runs, key=lambda each: each.incarnation):
        if run.newest is not None:
            found[run.node_id] = run.newest
    return found.values()


def counting(reports: DataFrame, limited: Sequence[Limit]) -> DataFrame:
    """The reports without those beyond a limit."""
    if not limited:
        return reports
    rows = [(limit.node_id, limit.incarnation, limit.end) for limit in limited]
    ends = reports.sparkSession.createDataFrame(rows, f"node_id string, incarnation long, end struct<{_POSITION}>")
    keys = [F.col(f"payload.{name}") == ends[name] for name in ("node_id", "incarnation")]
    with_ends = reports.join(F.broadcast(ends), keys, "left")
    is_before = F.struct(*Position._fields) < F.col("end")
    return with_ends.where(ends["node_id"].isNull() | is_before).select(reports["*"])

"""What the driver has to know of a batch of load reports: a row for each incarnation, and what was refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.incarnations import IncarnationReports
from controlplane.core.bundles.load.plausible import Implausible
from controlplane.core.bundles.load.reported_state import NodeState, Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import ResourceUsage
from streaming.load.decoded_rows import record_rows, usable_rows

_TOLD_FIGURES: Final = 10
"""How many figures that cannot be true are told with their values."""


class _Group(NamedTuple):
    """Records of one reason, or of one node, incarnation and partition, in the order of the columns that Spark returns.

    There is one for each node, and a field of Spark's own row is searched for by its name each time.
    """

    reason: str | None
    node_id: str
    incarnation: int
    partition: int
    record_count: int
    first: Row | None
    newest: Row | None
    newest_ms: int
    log_time_ms: int | None
    implausible_count: int


class BatchSummary(NamedTuple):
    """One batch.

    Attributes:
        refused: the number of refused records by reason.
        incarnations: the usable reports of each node, incarnation and partition.
        newest_ms: of each partition that has usable reports the greatest append time.
        log_time_ms: the greatest append time of usable reports that are not dated ahead; None if there is none.
        has_implausible_figures: whether a usable report has figures that cannot be true.
    """

    refused: Mapping[str, int]
    incarnations: Sequence[IncarnationReports]
    newest_ms: Mapping[int, int]
    log_time_ms: int | None
    has_implausible_figures: bool


def summary_of(decoded: DataFrame, latest_ms: int) -> BatchSummary:
    """The summary of a batch.

    Args:
        decoded: as :func:`streaming.load.decoding.decoded_reports` returns it.
        latest_ms: a later report is dated ahead.
    """
    # Within a partition offsets tell the order of reports: their times fall where a broker's clock is set back.
    place = F.struct("offset", "append_time_ms")
    header = F.struct(
        "offset",
        "append_time_ms",
        *(F.col(f"resources.{name}").alias(name) for name in Resources._fields),
        "version",
        F.col("figures.bundle_count").alias("bundle_count"),
        F.col("figures.weighted_usage").alias("weighted_usage"),
        F.col("figures.reported").alias("reported"),
    )
    is_plausible = F.col("figures.is_plausible")
    grouped = (
        record_rows(decoded)
        .groupBy("refusal.reason", "node_id", "incarnation", "partition")
        .agg(
            F.count(F.lit(1)).alias("record_count"),
            F.min(F.when(is_plausible, place)).alias("first"),
            F.max(F.when(is_plausible, header)).alias("newest"),
            F.max("append_time_ms").alias("newest_ms"),
            F.max(F.when(F.col("append_time_ms") <= latest_ms, F.col("append_time_ms"))).alias("log_time_ms"),
            F.sum(F.size("figures.implausible")).alias("implausible_count"),
        )
        .collect()
    )
    groups = [_Group._make(row) for row in grouped]
    usable = [group for group in groups if group.reason is None]
    refused: Counter[str] = Counter()
    newest_ms: dict[int, int] = {}
    for group in groups:
        if group.reason is not None:
            refused[group.reason] += group.record_count
        else:
            newest_ms[group.partition] = max(group.newest_ms, newest_ms.get(group.partition, group.newest_ms))
    return BatchSummary(
        refused,
        [_incarnation(group) for group in usable],
        newest_ms,
        max((group.log_time_ms for group in usable if group.log_time_ms is not None), default=None),
        any(group.implausible_count > 0 for group in usable),
    )


def implausible_figures(decoded: DataFrame) -> tuple[Mapping[str, int], Sequence[Implausible]]:
    """How often each figure cannot be true, by its name, and the first ones in the order of the log."""
    figures = usable_rows(decoded).select(*Position._fields, F.explode("figures.implausible").alias("figure"))
    counts = figures.groupBy("figure.name").count().collect()
    first = figures.orderBy(*Position._fields, "figure").limit(_TOLD_FIGURES).collect()
    return {row["name"]: row["count"] for row in counts}, [Implausible(*row["figure"]) for row in first]


def _incarnation(group: _Group) -> IncarnationReports:
    first, newest = group.first, group.newest
    return IncarnationReports(
        group.node_id,
        group.incarnation,
        None if first is None else Position(first[1], group.partition, first[0]),
        None if newest is None else _node(group, newest),
    )


def _node(group: _Group, newest: Row) -> NodeState:
    offset, append_time_ms, *resources, version, bundle_count, weighted_usage, reported = newest
    return NodeState(
        group.node_id,
        Position(append_time_ms, group.partition, offset),
        group.incarnation,
        Resources(*(ResourceUsage(*resource) for resource in resources)),
        version,
        weighted_usage,
        bundle_count,
        MessageLoad(*reported),
    )

"""What the driver has to know of a batch of load reports: a row for each process of a node, and what was refused."""

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
from streaming.tables.table_files import WrittenFile

_TOLD_FIGURES: Final = 10
"""How many figures that cannot be true are told with their values."""


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
    records = decoded.where("bucket IS NULL AND file IS NULL")
    rows = (
        records.groupBy("refusal.reason", "node_id", "incarnation", "partition")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.min(F.when(is_plausible, place)).alias("first"),
            F.max(F.when(is_plausible, header)).alias("newest"),
            F.max("append_time_ms").alias("newest_ms"),
            F.max(F.when(F.col("append_time_ms") <= latest_ms, F.col("append_time_ms"))).alias("log_time_ms"),
            F.sum(F.size("figures.implausible")).alias("implausible_count"),
        )
        .collect()
    )
    usable = [row for row in rows if row["reason"] is None]
    refused: Counter[str] = Counter()
    newest_ms: dict[int, int] = {}
    for row in rows:
        if row["reason"] is not None:
            refused[row["reason"]] += row["count"]
        else:
            newest_ms[row["partition"]] = max(row["newest_ms"], newest_ms.get(row["partition"], row["newest_ms"]))
    return BatchSummary(
        refused,
        [_incarnation(row) for row in usable],
        newest_ms,
        max((row["log_time_ms"] for row in usable if row["log_time_ms"] is not None), default=None),
        any(row["implausible_count"] > 0 for row in usable),
    )


def files_of(decoded: DataFrame) -> list[WrittenFile]:
    """The files of ``load_reports`` that the tasks of a batch have written."""
    return [WrittenFile(*row["file"]) for row in decoded.where("file IS NOT NULL").select("file").collect()]


def implausible_figures(decoded: DataFrame) -> tuple[Mapping[str, int], Sequence[Implausible]]:
    """How often each figure cannot be true, by its name, and the first ones in the order of the log."""
    figures = decoded.where("figures IS NOT NULL").select(
        *Position._fields, F.explode("figures.implausible").alias("figure")
    )
    counts = figures.groupBy("figure.name").count().collect()
    first = figures.orderBy(*Position._fields, "figure").limit(_TOLD_FIGURES).collect()
    return {row["name"]: row["count"] for row in counts}, [Implausible(*row["figure"]) for row in first]


def _incarnation(row: Row) -> IncarnationReports:
    first, newest = row["first"], row["newest"]
    return IncarnationReports(
        row["node_id"],
        row["incarnation"],
        None if first is None else _position(first, row["partition"]),
        None if newest is None else _node(row, newest),
    )


def _position(place: Row, partition: int) -> Position:
    return Position(place["append_time_ms"], partition, place["offset"])


def _node(row: Row, newest: Row) -> NodeState:
    return NodeState(
        row["node_id"],
        _position(newest, row["partition"]),
        row["incarnation"],
        Resources(*(ResourceUsage(*newest[name]) for name in Resources._fields)),
        newest["version"],
        newest["weighted_usage"],
        newest["bundle_count"],
        MessageLoad(*newest["reported"]),
    )

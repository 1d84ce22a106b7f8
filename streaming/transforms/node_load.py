"""Load reports to the rows of ``broker_load``: each node's newest report and its bundles' averages summed."""

from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import DoubleType

from controlplane.core.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.records import ResourceUsage
from streaming.table_contracts import BROKER_LOAD_TABLE
from streaming.transforms.averages import message_load_sums


class _Resources(NamedTuple):
    """A report's resources, for the core's rule."""

    cpu: ResourceUsage
    memory: ResourceUsage
    direct_memory: ResourceUsage
    bandwidth_in: ResourceUsage
    bandwidth_out: ResourceUsage


_RESOURCES: Final = _Resources._fields


def node_rows(reports: DataFrame, bundles: DataFrame, current: DataFrame, weights: ResourceWeights) -> DataFrame:
    """The rows of ``broker_load`` for every node that has a report.

    Args:
        reports: rows of ``load_reports``.
        bundles: the rows of ``bundle_load`` after these reports.
        current: the table ``broker_load`` before.
        weights: how much each resource counts.
    """
    newest = _newest(reports)
    sums = _sums(newest, bundles)
    kept = current.select("node_id", "smoothed_usage", "smoothed_at_ms")
    rows = newest.join(sums, on="node_id", how="left").join(kept, on="node_id", how="left")
    usage = _weighted_usage(weights)(*_RESOURCES)
    return rows.withColumn("weighted_usage", usage).select(*BROKER_LOAD_TABLE.columns)


def _newest(reports: DataFrame) -> DataFrame:
    """Each node's last report of those given, in the order of append time, partition and offset."""
    position = F.struct("append_time_ms", "partition", "offset")
    taken = ("incarnation", *_RESOURCES, "version", "bundles")
    grouped = reports.groupBy("node_id").agg(
        F.max(position).alias("position"), F.max_by(F.struct(*taken), position).alias("report")
    )
    # Structs are ordered by their first field, here the bundle's id.
    newest = grouped.select("node_id", "position", "report.*").withColumn("bundles", F.sort_array("bundles"))
    return newest.select(
        "node_id",
        "incarnation",
        F.col("position.append_time_ms").alias("report_time_ms"),
        F.col("position.partition").alias("report_partition"),
        F.col("position.offset").alias("report_offset"),
        *_RESOURCES,
        "version",
        F.size("bundles").cast("long").alias("bundle_count"),
        F.transform("bundles", lambda bundle: bundle["bundle_id"]).alias("bundle_ids"),
        message_load_sums(F.col("bundles")).alias("reported"),
    )


def _sums(newest: DataFrame, bundles: DataFrame) -> DataFrame:
    """``broker_averages`` of the core: the sums in ascending order of the bundles' ids."""
    owned = newest.select("node_id", F.explode_outer("bundle_ids").alias("bundle_id"))
    averages = F.struct("bundle_id", "short_term", "long_term").alias("averages")
    joined = owned.join(bundles.select("bundle_id", averages), on="bundle_id", how="left")
    grouped = joined.groupBy("node_id").agg(F.sort_array(F.collect_list("averages")).alias("averages"))
    return grouped.select("node_id", _sum_of("short_term"), _sum_of("long_term"))


def _sum_of(average: str) -> Column:
    return message_load_sums(F.transform("averages", lambda each: each[average])).alias(average)


def _weighted_usage(weights: ResourceWeights) -> Callable[..., Column]:
    def usage(*resources: tuple[float, float]) -> float:
        return weighted_usage(_Resources(*(ResourceUsage(*each) for each in resources)), weights)

    return F.udf(usage, DoubleType(), useArrow=False)

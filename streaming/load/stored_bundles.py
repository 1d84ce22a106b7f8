"""The bundles that count at an evaluation, read from ``bundle_load`` by executors.

Only rows that a rule may choose, and one row for each node, reach the driver.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState
from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, throughput, until_target
from controlplane.core.bundles.splitting.limits import SplitLimits
from streaming.load.rows import bundle_of
from streaming.table_contracts import BUNDLE_LOAD_TABLE

_NODE_COLUMNS: Final = "node_id string, node_time_ms long, node_partition int, node_offset long"


class StoredBundles:
    """Those of ``bundle_load``; the :class:`streaming.load.candidates.OwnedBundles` of the stream.

    Args:
        stored: the table.
        counted: the nodes that count.
        now_ms: log time of the newest report.
        grace_period_ms: a bundle that changed its node within this time is not shed.
    """

    def __init__(self, stored: DataFrame, counted: Sequence[NodeState], now_ms: int, grace_period_ms: int) -> None:
        self._session = stored.sparkSession
        nodes = self._session.createDataFrame([(node.node_id, *node.position) for node in counted], _NODE_COLUMNS)
        reported = F.struct("report_time_ms", "report_partition", "report_offset")
        newest = F.struct("node_time_ms", "node_partition", "node_offset")
        # Or behind it: where figures of the node cannot be true, samples may be of a later report than its row.
        is_current = F.when(
            F.col("report_partition") == F.col("node_partition"), F.col("report_offset") >= F.col("node_offset")
        ).otherwise(reported >= newest)
        self._owned = stored.join(F.broadcast(nodes), "node_id").where(is_current)
        moved_at_ms = F.col("moved_at_ms")
        self._may_be_shed = moved_at_ms.isNull() | (F.lit(now_ms) - moved_at_ms >= grace_period_ms)

    def sums(self) -> Mapping[str, BundleSums]:
        """See the protocol."""
        bundles = F.sort_array(F.collect_list(F.struct("bundle_id", "short_term", "long_term")))
        by_node = self._owned.groupBy("node_id").agg(bundles.alias("bundles"))
        rows = by_node.select("node_id", F.size("bundles"), _sum("short_term"), _sum("long_term")).collect()
        return {
            node_id: BundleSums(count, MessageLoad(*short_term), MessageLoad(*long_term))
            for node_id, count, short_term, long_term in rows
        }

    def busiest(self, targets: Mapping[str, float]) -> list[BundleState]:
        """See the protocol."""
        wanted = self._session.createDataFrame(list(targets.items()), "node_id string, target double")
        hot = self._owned.where(self._may_be_shed).join(F.broadcast(wanted), "node_id")
        chosen = hot.groupBy("node_id").applyInArrow(busiest_of_node, BUNDLE_LOAD_TABLE.schema)
        return [bundle_of(row) for row in chosen.collect()]

    def exceeding(self, allowed: SplitLimits) -> tuple[list[BundleState], Mapping[str, int]]:
        """See the protocol."""
        rows = self._owned.where(_exceeds(allowed)).select(*BUNDLE_LOAD_TABLE.columns).collect()
        found = [bundle_of(row) for row in rows]
        namespaces = sorted({bundle.namespace for bundle in found})
        if not namespaces:
            return [], {}
        theirs = self._owned.where(F.col("namespace").isin(namespaces))
        return found, {row["namespace"]: row["count"] for row in theirs.groupBy("namespace").count().collect()}


def busiest_of_node(bundles: pa.Table) -> pa.Table:
    """The rows of one node that its rule may choose, by the rule's own functions; runs on executors.

    Args:
        bundles: rows of ``bundle_load`` that may be shed, with the column ``target``.
    """
    places = {bundle_id: place for place, bundle_id in enumerate(bundles["bundle_id"].to_pylist())}
    averages = bundles["short_term"].to_pylist()
    histories = {bundle_id: _history(averages[places[bundle_id]]) for bundle_id in sorted(places)}
    in_order = SheddableBundles(LoadView({}, histories)).of(histories, throughput)
    chosen = until_target(in_order, bundles["target"][0].as_py()) if in_order else []
    rows = bundles.take(pa.array([places[each.bundle_id] for each in chosen], pa.int64()))
    return rows.select(BUNDLE_LOAD_TABLE.columns)


def _history(short_term: Mapping[str, float]) -> BundleHistory:
    load = MessageLoad(*(short_term[name] for name in MessageLoad._fields))
    average = TimeAverage(UNSEEN_BUNDLE.short_term.max_samples, int(short_term["sample_count"]), load)
    return BundleHistory(BundleAverages(average, UNSEEN_BUNDLE.long_term))


def _sum(average: str) -> Column:
    """The sum of an average over the array ``bundles``, one after the other: its bits depend on the order."""
    names = MessageLoad._fields
    nothing = F.struct(*(F.lit(0.0).alias(name) for name in names))
    return F.aggregate(
        "bundles",
        nothing,
        lambda total, bundle: F.struct(*((total[name] + bundle[average][name]).alias(name) for name in names)),
    )


def _exceeds(allowed: SplitLimits) -> Column:
    """As :func:`controlplane.core.bundles.splitting.limits.exceeded_limits` has it, which decides in the end.

    Counts are added as doubles: a sum that does not fit into 64 bits would end the query.
    """
    rate = F.col("long_term.message_rate_in_per_s") + F.col("long_term.message_rate_out_per_s")
    bytes_per_s = F.col("long_term.throughput_in_bytes_per_s") + F.col("long_term.throughput_out_bytes_per_s")
    is_beyond = (
        (F.col("topic_count") > allowed.max_topics)
        | (rate > float(allowed.max_message_rate_per_s))
        | (bytes_per_s > float(allowed.max_bandwidth_mib_per_s * BYTES_PER_MIB))
    )
    if allowed.max_sessions > 0 or allowed.limits_sessions_below_one:
        is_beyond = is_beyond | (
            F.col("producer_count").cast("double") + F.col("consumer_count") > allowed.max_sessions
        )
    return (F.col("topic_count") >= allowed.min_topics) & is_beyond

"""The bundles that count at an evaluation, read from ``bundle_load`` by executors.

Only rows that a rule may choose, and one row for each node, reach the driver.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState
from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.load.sample_fold import Numbers
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, throughput, until_target
from controlplane.core.bundles.splitting.limits import SplitLimits
from streaming.contracts.loads import BUNDLE_LOAD_TABLE, MESSAGE_LOAD_TYPE
from streaming.load.bucket_files import read_buckets
from streaming.load.state_rows import bundle_of
from streaming.storage import StoragePath

_GROUP: Final = "node_group"
_GROUPS_EACH_TASK: Final = 4
"""Executors get the bundles of many nodes at once, since each call costs more than a node's bundles do."""
_SUMS_TYPE: Final = StructType(
    [
        StructField("node_id", StringType()),
        StructField("owned_count", LongType()),
        *(StructField(name, MESSAGE_LOAD_TYPE) for name in ("short_term", "long_term")),
    ]
)
_SUMS: Final = to_arrow_schema(_SUMS_TYPE)
_NODE_COLUMNS: Final = "node_id string, node_time_ms long, node_partition int, node_offset long"


def stored_rows(buckets: DataFrame, folder: StoragePath) -> DataFrame:
    """The rows of ``bundle_load``, bucket by bucket.

    Args:
        buckets: see :func:`streaming.load.bucket_files.bucket_files`.
        folder: the table's.
    """
    return buckets.mapInArrow(functools.partial(_read_buckets, folder=folder), BUNDLE_LOAD_TABLE.schema)


def _read_buckets(batches: Iterable[pa.RecordBatch], folder: StoragePath) -> Iterator[pa.RecordBatch]:
    for _, rows in read_buckets(batches, folder):
        yield from rows.to_batches()


class StoredBundles:
    """Those of ``bundle_load``; the :class:`streaming.load.candidates.OwnedBundles` of the stream.

    It keeps them on executors from the first question on, until it is closed.

    Args:
        stored: the table's rows.
        counted: the nodes that count.
        now_ms: log time of the evaluation.
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
        group_count = _GROUPS_EACH_TASK * int(str(self._session.conf.get("spark.sql.shuffle.partitions")))
        group = F.pmod(F.hash("node_id"), F.lit(group_count)).alias(_GROUP)
        self._owned = stored.join(F.broadcast(nodes), "node_id").where(is_current).select("*", group).persist()
        moved_at_ms = F.col("moved_at_ms")
        self._may_be_shed = moved_at_ms.isNull() | (F.lit(now_ms) - moved_at_ms >= grace_period_ms)

    def close(self) -> None:
        """Let executors forget them."""
        self._owned.unpersist()

    def sums(self) -> Mapping[str, BundleSums]:
        """See the protocol."""
        columns = self._owned.select(_GROUP, "node_id", "bundle_id", "short_term", "long_term")
        rows = columns.groupBy(_GROUP).applyInArrow(sums_of_nodes, _SUMS_TYPE).collect()
        return {
            node_id: BundleSums(count, MessageLoad(*short_term), MessageLoad(*long_term))
            for node_id, count, short_term, long_term in rows
        }

    def busiest(self, targets: Mapping[str, float]) -> list[BundleState]:
        """See the protocol."""
        wanted = self._session.createDataFrame(list(targets.items()), "node_id string, target double")
        hot = self._owned.where(self._may_be_shed).join(F.broadcast(wanted), "node_id")
        chosen = hot.groupBy(_GROUP).applyInArrow(busiest_of_nodes, BUNDLE_LOAD_TABLE.schema)
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


def sums_of_nodes(bundles: pa.Table) -> pa.Table:
    """One row for each node of a group; runs on executors.

    The averages are added one after the other in the order of the bundles' ids, because the bits of a sum depend on it.
    """
    in_order = bundles.sort_by([("node_id", "ascending"), ("bundle_id", "ascending")])
    node_ids = in_order["node_id"].combine_chunks().dictionary_encode()
    ends = np.cumsum(np.bincount(node_ids.indices.to_numpy(), minlength=len(node_ids.dictionary)))
    starts = np.concatenate([[0], ends[:-1]])
    averages = [_sums(in_order[name], starts, ends, _SUMS.field(name).type) for name in ("short_term", "long_term")]
    return pa.table([node_ids.dictionary, pa.array(ends - starts), *averages], schema=_SUMS)


def _sums(averages: pa.ChunkedArray, starts: Numbers, ends: Numbers, kind: pa.StructType) -> pa.StructArray:
    rows = averages.combine_chunks()
    totals = []
    for name in MessageLoad._fields:
        values = pc.struct_field(rows, name).to_numpy()
        # Accumulated, because numpy's own sum adds in pairs.
        slices = (values[start:end] for start, end in zip(starts, ends, strict=True))
        totals.append(pa.array([0.0 + np.add.accumulate(each)[-1] for each in slices], pa.float64()))
    return pa.StructArray.from_arrays(totals, fields=list(kind))


def busiest_of_nodes(bundles: pa.Table) -> pa.Table:
    """Of each node of a group the rows that its rule may choose, by the rule's own functions; runs on executors.

    Args:
        bundles: rows of ``bundle_load`` that may be shed, with the column ``target``.
    """
    node_ids = bundles["node_id"].to_pylist()
    targets = dict(zip(node_ids, bundles["target"].to_pylist(), strict=True))
    places = {bundle_id: place for place, bundle_id in enumerate(bundles["bundle_id"].to_pylist())}
    averages = bundles["short_term"].to_pylist()
    histories = {bundle_id: _history(averages[places[bundle_id]]) for bundle_id in sorted(places)}
    of_node: dict[str, list[str]] = {node_id: [] for node_id in targets}
    for bundle_id in histories:
        of_node[node_ids[places[bundle_id]]].append(bundle_id)
    sheddable = SheddableBundles(LoadView({}, histories))
    chosen = [
        places[each.bundle_id]
        for node_id, bundle_ids in of_node.items()
        for each in until_target(sheddable.of(bundle_ids, throughput), targets[node_id])
    ]
    return bundles.take(pa.array(chosen, pa.int64())).select(BUNDLE_LOAD_TABLE.columns)


def _history(short_term: Mapping[str, float]) -> BundleHistory:
    load = MessageLoad(*(short_term[name] for name in MessageLoad._fields))
    average = TimeAverage(UNSEEN_BUNDLE.short_term.max_samples, int(short_term["sample_count"]), load)
    return BundleHistory(BundleAverages(average, UNSEEN_BUNDLE.long_term))


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

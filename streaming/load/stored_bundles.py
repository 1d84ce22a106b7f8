"""The bundles that count at an evaluation, read from ``bundle_load`` by executors.

For each question they read the buckets again, only the columns that it needs, and the rows of a node's bundles travel
packed to the task that answers for the node: docs/decisions/0043 has the figures. Only rows that a rule may choose, and
one row for each node, reach the driver.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.position_columns import PositionColumns, are_behind
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState
from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, throughput, until_target
from controlplane.core.bundles.splitting.limits import SplitLimits
from streaming.bundle_columns import loads_of
from streaming.load.bucket_files import BUNDLE_SCHEMA, StoredBuckets
from streaming.load.packed_rows import packed, packed_groups, unpacked
from streaming.load.state_rows import bundle_of
from streaming.worker_setup import set_up_worker

_GROUPS_EACH_TASK: Final = 4
"""Into how many groups of nodes a task's share is divided. A call of a task costs more than a node's bundles do, so a
group has many nodes; and a task holds the bundles of one group at once, so it is not all of them."""
_NODE: Final = "node"
"""A bundle's node, by its place among the nodes that count."""
_POSITION: Final = ("report_time_ms", "report_partition", "report_offset")
_AVERAGES: Final = ("short_term", "long_term")
_NODES: Final = pa.schema([BUNDLE_SCHEMA.field(name) for name in ("node_id", *_POSITION)])
_SUMS: Final = pa.schema(
    [
        (_NODE, pa.int32()),
        ("owned_count", pa.int64()),
        *((f"{average}.{name}", pa.float64()) for average in _AVERAGES for name in MessageLoad._fields),
    ]
)
_BLOCK_COLUMNS: Final = "node_group int, bundles binary"


class StoredBundles:
    """Those of ``bundle_load``; the :class:`streaming.load.candidates.OwnedBundles` of the stream.

    Args:
        buckets: those of the table.
        counted: the nodes that count.
        now_ms: log time of the evaluation.
        grace_period_ms: a bundle that changed its node within this time is not shed.
    """

    def __init__(self, buckets: StoredBuckets, counted: Sequence[NodeState], now_ms: int, grace_period_ms: int) -> None:
        self._buckets = buckets
        positions = [(node.node_id, *node.position) for node in counted]
        self._nodes = pa.RecordBatch.from_pylist(
            [dict(zip(_NODES.names, row, strict=True)) for row in positions], _NODES
        )
        self._moved_before_ms = max(now_ms - grace_period_ms, -1)  # a grace period may be longer than 64 bits hold
        self._group_count = _GROUPS_EACH_TASK * int(str(buckets.session.conf.get("spark.sql.shuffle.partitions")))

    def sums(self) -> Mapping[str, BundleSums]:
        """See the protocol."""
        columns = ("bundle_id", "node_id", *_POSITION, *_AVERAGES)
        found = self._by_node(_all, _sums_of_nodes, columns, _SUMS)
        node_ids = self._nodes.column("node_id").take(found[_NODE].combine_chunks()).to_pylist()
        figures = zip(*(found[name].to_pylist() for name in _SUMS.names[1:]), strict=True)
        width = len(MessageLoad._fields)
        return {
            node_id: BundleSums(count, MessageLoad(*sums[:width]), MessageLoad(*sums[width:]))
            for node_id, (count, *sums) in zip(node_ids, figures, strict=True)
        }

    def busiest(self, targets: Mapping[str, float]) -> list[BundleState]:
        """See the protocol."""
        select = functools.partial(
            _may_be_shed, node_ids=pa.array(targets, pa.string()), moved_before_ms=self._moved_before_ms
        )
        answer = functools.partial(_busiest_of_nodes, targets=targets)
        return _states(self._by_node(select, answer, BUNDLE_SCHEMA.names, BUNDLE_SCHEMA))

    def exceeding(self, allowed: SplitLimits) -> tuple[list[BundleState], Mapping[str, int]]:
        """See the protocol."""
        select = functools.partial(_exceeding, nodes=self._nodes, allowed=allowed)
        parts = self._buckets.map(select, "bundles binary").collect()
        found = _states(unpacked(part[0] for part in parts)) if parts else []
        namespaces = sorted({bundle.namespace for bundle in found})
        counts: Counter[str] = Counter()
        if namespaces:
            count = functools.partial(_namespace_counts, nodes=self._nodes, namespaces=namespaces)
            columns = ("namespace", "node_id", *_POSITION)
            for row in self._buckets.map(count, "namespace string, bundle_count long", columns).collect():
                counts[row[0]] += row[1]
        return found, counts

    def _by_node(
        self,
        select: Callable[[pa.Table], pa.Table],
        answer: Callable[[pa.Table], pa.Table],
        columns: Sequence[str],
        schema: pa.Schema,
    ) -> pa.Table:
        """What a function answers for groups of nodes, of which it gets all bundles that were selected.

        Args:
            select: takes rows of bundles that count, with the column ``node``, and returns some of them.
            answer: takes the selected rows of some nodes.
            columns: those of ``bundle_load`` that are wanted.
            schema: that of the answers.
        """
        block = functools.partial(_blocks, nodes=self._nodes, select=select, group_count=self._group_count)
        blocks = self._buckets.map(block, _BLOCK_COLUMNS, columns)

        def answered(group: pa.Table) -> pa.Table:
            set_up_worker()
            bundles = unpacked(each.as_buffer() for each in group["bundles"])
            return pa.table({"answers": pa.array([packed(answer(bundles))], pa.binary())})

        parts = blocks.groupBy("node_group").applyInArrow(answered, "answers binary").collect()
        return unpacked(part[0] for part in parts) if parts else schema.empty_table()


def _states(rows: pa.Table) -> list[BundleState]:
    return [bundle_of(row) for row in rows.to_pylist(maps_as_pydicts="strict")]


def _owned(rows: pa.Table, nodes: pa.RecordBatch) -> pa.Table:
    """The rows of bundles that count, with the column ``node``.

    A bundle counts if its newest sample is of its node's newest report. Or of a later one: where figures of the node
    cannot be true, samples may be of a later report than its row.
    """
    rows = rows.append_column(_NODE, pc.index_in(rows["node_id"], nodes.column("node_id")))
    rows = rows.filter(pc.is_valid(rows[_NODE]))
    newest = pa.Table.from_batches([nodes]).take(rows[_NODE])
    return rows.filter(pa.array(~are_behind(_positions(newest), _positions(rows))))


def _positions(rows: pa.Table) -> PositionColumns:
    return PositionColumns(*(rows[name].to_numpy() for name in _POSITION))


def _blocks(
    rows: pa.Table, nodes: pa.RecordBatch, select: Callable[[pa.Table], pa.Table], group_count: int
) -> Iterator[pa.RecordBatch]:
    """The selected rows of a bucket, packed by groups of nodes."""
    selected = select(_owned(rows, nodes))
    for group, bundles in packed_groups(selected, selected[_NODE].to_numpy() % group_count):
        yield pa.record_batch(
            [pa.array([group], pa.int32()), pa.array([bundles], pa.binary())], ["node_group", "bundles"]
        )


def _all(bundles: pa.Table) -> pa.Table:
    return bundles


def _sums_of_nodes(bundles: pa.Table) -> pa.Table:
    """One row for each node.

    The averages are added one after the other in the order of the bundles' ids, because the bits of a sum depend on it.
    """
    in_order = bundles.sort_by([(_NODE, "ascending"), ("bundle_id", "ascending")])
    nodes, firsts, counts = np.unique(in_order[_NODE].to_numpy(), return_index=True, return_counts=True)
    loads = np.concatenate([loads_of(in_order[average].combine_chunks()) for average in _AVERAGES])
    # Accumulated, because numpy's own sum adds in pairs.
    totals = [
        0.0 + np.add.accumulate(loads[:, first : first + count], axis=1)[:, -1]
        for first, count in zip(firsts.tolist(), counts.tolist(), strict=True)
    ]
    return pa.table([nodes, counts, *np.stack(totals, axis=1)], schema=_SUMS)


def _may_be_shed(bundles: pa.Table, node_ids: pa.Array, moved_before_ms: int) -> pa.Table:
    moved_at_ms = bundles["moved_at_ms"]
    is_at_rest = pc.less_equal(pc.fill_null(moved_at_ms, moved_before_ms), moved_before_ms)
    return bundles.filter(pc.and_(pc.is_in(bundles["node_id"], node_ids), is_at_rest))


def _busiest_of_nodes(bundles: pa.Table, targets: Mapping[str, float]) -> pa.Table:
    """Of each node the rows that its rule may choose, by the rule's own functions.

    Args:
        bundles: rows of ``bundle_load`` that may be shed.
        targets: see :class:`streaming.load.candidates.OwnedBundles`.
    """
    node_ids = bundles["node_id"].to_pylist()
    places = {bundle_id: place for place, bundle_id in enumerate(bundles["bundle_id"].to_pylist())}
    counts = pc.struct_field(bundles["short_term"].combine_chunks(), "sample_count").to_pylist()
    loads = loads_of(bundles["short_term"].combine_chunks()).T.tolist()
    histories = {
        bundle_id: _history(counts[place], MessageLoad(*loads[place])) for bundle_id, place in sorted(places.items())
    }
    of_node: dict[str, list[str]] = {node_id: [] for node_id in node_ids}
    for bundle_id in histories:
        of_node[node_ids[places[bundle_id]]].append(bundle_id)
    sheddable = SheddableBundles(LoadView({}, histories))
    chosen = [
        places[each.bundle_id]
        for node_id, bundle_ids in of_node.items()
        for each in until_target(sheddable.of(bundle_ids, throughput), targets[node_id])
    ]
    return bundles.take(pa.array(chosen, pa.int64())).select(BUNDLE_SCHEMA.names)


def _history(sample_count: int, load: MessageLoad) -> BundleHistory:
    """What a rule of shedding sees of a bundle: its short-term average."""
    average = TimeAverage(UNSEEN_BUNDLE.short_term.max_samples, sample_count, load)
    return BundleHistory(BundleAverages(average, UNSEEN_BUNDLE.long_term))


def _exceeding(rows: pa.Table, nodes: pa.RecordBatch, allowed: SplitLimits) -> Iterator[pa.RecordBatch]:
    """The bundles that exceed a limit, packed.

    As :func:`controlplane.core.bundles.splitting.limits.exceeded_limits` has it, which decides in the end.
    """
    bundles = _owned(rows, nodes)
    bytes_in, bytes_out, rate_in, rate_out = loads_of(bundles["long_term"].combine_chunks())
    topic_count = bundles["topic_count"].to_numpy()
    is_beyond = topic_count > allowed.max_topics
    is_beyond |= rate_in + rate_out > float(allowed.max_message_rate_per_s)
    is_beyond |= bytes_in + bytes_out > float(allowed.max_bandwidth_mib_per_s * BYTES_PER_MIB)
    if allowed.max_sessions > 0 or allowed.limits_sessions_below_one:
        # As doubles: a sum may not fit into 64 bits.
        sessions = bundles["producer_count"].to_numpy() + bundles["consumer_count"].to_numpy().astype(np.float64)
        is_beyond |= sessions > allowed.max_sessions
    found = bundles.filter(pa.array(is_beyond & (topic_count >= allowed.min_topics))).select(BUNDLE_SCHEMA.names)
    if found.num_rows:
        yield pa.RecordBatch.from_pydict({"bundles": pa.array([packed(found)], pa.binary())})


def _namespace_counts(rows: pa.Table, nodes: pa.RecordBatch, namespaces: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """How many bundles of a bucket each of these namespaces has."""
    names = _owned(rows, nodes)["namespace"]
    counted = names.filter(pc.is_in(names, pa.array(namespaces, pa.string()))).value_counts()
    yield pa.RecordBatch.from_arrays(list(counted.flatten()), names=["namespace", "bundle_count"])

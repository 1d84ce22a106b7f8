"""Rows of the tables ``bundle_load`` and ``broker_load``, to and from the core's state of loads.

The stream of load reports keeps one such state in its driver and writes it whole, as those tables:
docs/decisions/0007-load-state-in-the-driver.md says why.
"""

from collections.abc import Iterable, Mapping

from pyspark.sql import Row

from controlplane.core.bundles.load.averages import (
    UNSEEN_BUNDLE,
    BundleAverages,
    MessageLoad,
    TimeAverage,
    node_averages,
)
from controlplane.core.bundles.load.load_state import BundleState, LoadState, NodeState, Position, Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage


def bundle_rows(state: LoadState) -> list[tuple[object, ...]]:
    """Every row of ``bundle_load``: the values of its columns, in their order."""
    return [_bundle_row(bundle) for bundle in state.bundles.values()]


def node_rows(state: LoadState) -> list[tuple[object, ...]]:
    """Every row of ``broker_load``, with the sums of its bundles' averages."""
    averages = {bundle_id: bundle.averages for bundle_id, bundle in state.bundles.items()}
    return [_node_row(node, averages) for node in state.nodes.values()]


def state_of_rows(bundles: Iterable[Row], nodes: Iterable[Row]) -> LoadState:
    """The state in rows of ``bundle_load`` and ``broker_load``."""
    return LoadState(map(_bundle_of_row, bundles), map(_node_of_row, nodes))


def _bundle_row(bundle: BundleState) -> tuple[object, ...]:
    short_term, long_term = bundle.averages.short_term, bundle.averages.long_term
    return (
        bundle.bundle_id,
        bundle.namespace,
        bundle.node_id,
        *bundle.position,
        bundle.first_report_time_ms,
        bundle.moved_at_ms,
        *bundle.newest[1:],
        (short_term.sample_count, *short_term.load),
        (long_term.sample_count, *long_term.load),
        dict(bundle.folded_offsets),
    )


def _node_row(node: NodeState, averages: Mapping[str, BundleAverages]) -> tuple[object, ...]:
    sums = node_averages(node.bundle_ids, averages)
    return (
        node.node_id,
        node.incarnation,
        *node.position,
        node.weighted_usage,
        *node.resources,
        node.version,
        len(node.bundle_ids),
        list(node.bundle_ids),
        node.reported,
        sums.short_term,
        sums.long_term,
        node.smoothed_usage,
        node.smoothed_at_ms,
    )


def _bundle_of_row(row: Row) -> BundleState:
    return BundleState(
        row["bundle_id"],
        row["node_id"],
        _position_of_row(row),
        row["first_report_time_ms"],
        row["moved_at_ms"],
        BundleLoad(*(row[name] for name in BundleLoad._fields)),
        BundleAverages(
            _average_of_row(UNSEEN_BUNDLE.short_term, row["short_term"]),
            _average_of_row(UNSEEN_BUNDLE.long_term, row["long_term"]),
        ),
        dict(row["folded_offsets"]),
    )


def _average_of_row(rule: TimeAverage, row: Row) -> TimeAverage:
    sample_count, *load = row
    return TimeAverage(rule.max_samples, sample_count, MessageLoad(*load))


def _node_of_row(row: Row) -> NodeState:
    return NodeState(
        row["node_id"],
        _position_of_row(row),
        row["incarnation"],
        Resources(*(ResourceUsage(*row[name]) for name in Resources._fields)),
        row["version"],
        row["weighted_usage"],
        tuple(row["bundle_ids"]),
        MessageLoad(*row["reported"]),
        row["smoothed_usage"],
        row["smoothed_at_ms"],
    )


def _position_of_row(row: Row) -> Position:
    return Position(row["report_time_ms"], row["report_partition"], row["report_offset"])

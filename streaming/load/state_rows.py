"""Bundles and nodes as rows of ``bundle_load`` and ``broker_load``."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState, Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.contracts.loads import BROKER_LOAD_TABLE


def bundle_of(row: Mapping[str, Any]) -> BundleState:
    """The bundle in a row of ``bundle_load``, whose structs and maps are mappings."""
    return BundleState(
        row["bundle_id"],
        row["node_id"],
        _position(row),
        row["first_report_time_ms"],
        row["moved_at_ms"],
        BundleLoad(*(row[name] for name in BundleLoad._fields)),
        BundleAverages(
            _average(UNSEEN_BUNDLE.short_term, row["short_term"]),
            _average(UNSEEN_BUNDLE.long_term, row["long_term"]),
        ),
        dict(row["folded_offsets"]),
    )


def node_of(row: Mapping[str, Any]) -> NodeState:
    """The node in a row of ``broker_load``, whose structs are mappings."""
    owned = row["owned_bundle_count"]
    averages = (row["short_term"], row["long_term"])
    sums = None if owned is None else BundleSums(owned, *(MessageLoad(**average) for average in averages))
    return NodeState(
        row["node_id"],
        _position(row),
        row["incarnation"],
        Resources(*(ResourceUsage(**row[name]) for name in Resources._fields)),
        row["version"],
        row["weighted_usage"],
        row["bundle_count"],
        MessageLoad(**row["reported"]),
        sums,
        row["smoothed_usage"],
        row["smoothed_at_ms"],
    )


def node_row(node: NodeState) -> dict[str, Any]:
    """A node as a row of ``broker_load``."""
    sums: Sequence[object] = (None, None, None) if node.sums is None else node.sums
    values = (
        node.node_id,
        node.incarnation,
        *node.position,
        node.weighted_usage,
        *node.resources,
        node.version,
        node.bundle_count,
        node.reported,
        *sums,
        node.smoothed_usage,
        node.smoothed_at_ms,
    )
    return dict(zip(BROKER_LOAD_TABLE.columns, values, strict=True))


def _position(row: Mapping[str, Any]) -> Position:
    return Position(row["report_time_ms"], row["report_partition"], row["report_offset"])


def _average(rule: TimeAverage, row: Mapping[str, Any]) -> TimeAverage:
    sample_count, *load = row.values()
    return TimeAverage(rule.max_samples, sample_count, MessageLoad(*load))

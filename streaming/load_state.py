"""The load of bundles and nodes, as load reports fold into it: the rules are the core's, and no Spark runs here.

The stream of load reports keeps one such state in its driver and writes it whole, as the tables ``bundle_load`` and
``broker_load``: docs/decisions/0007-load-state-in-the-driver.md says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Row

from controlplane.core.bundles.load.averages import (
    NO_LOAD,
    UNSEEN_BUNDLE,
    BundleAverages,
    MessageLoad,
    TimeAverage,
    message_load,
    node_averages,
)
from controlplane.core.bundles.load.plausible import Beyond, Implausible, implausible_load, implausible_node
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import NodeLoad
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage


class Position(NamedTuple):
    """Where a report stands in the log; reports fold in this order."""

    append_time_ms: int
    partition: int
    offset: int


class Resources(NamedTuple):
    """Usage and limit of what a node has, as in a load report."""

    cpu: ResourceUsage
    memory: ResourceUsage
    direct_memory: ResourceUsage
    bandwidth_in: ResourceUsage
    bandwidth_out: ResourceUsage


class PlacedReport(NamedTuple):
    """What counts of a load report, with its place in the log."""

    position: Position
    node_id: str
    incarnation: int
    resources: Resources
    version: str
    bundles: Sequence[BundleLoad]


class BundleState(NamedTuple):
    """A bundle that was reported: a row of ``bundle_load``.

    Attributes:
        bundle_id: namespace and bounds.
        node_id: the node that reported it last.
        position: that report's place.
        first_report_time_ms: append time of the first report that counted.
        moved_at_ms: append time of the present node's first report; None: it never moved.
        newest: that report's figures.
        averages: over all reports.
        folded_offsets: by partition, the offset up to which reports are in the averages.
    """

    bundle_id: str
    node_id: str
    position: Position
    first_report_time_ms: int
    moved_at_ms: int | None
    newest: BundleLoad
    averages: BundleAverages
    folded_offsets: Mapping[int, int]

    @property
    def namespace(self) -> str:
        """Whose bundle it is: namespaces may hold slashes, bounds do not."""
        return self.bundle_id.rpartition("/")[0]

    def row(self) -> tuple[object, ...]:
        """The values of the table's columns, in their order."""
        return (
            self.bundle_id,
            self.namespace,
            self.node_id,
            *self.position,
            self.first_report_time_ms,
            self.moved_at_ms,
            *self.newest[1:],
            (self.averages.short_term.sample_count, *self.averages.short_term.load),
            (self.averages.long_term.sample_count, *self.averages.long_term.load),
            dict(self.folded_offsets),
        )


class NodeState(NamedTuple):
    """A node that reported its load: a row of ``broker_load`` but for the sums of its bundles' averages.

    Attributes:
        node_id: the node.
        position: its newest report's place.
        newest: that report; its bundles ascend by their ids.
        weighted_usage: of that report, 1.0 for 100 percent.
        reported: that report's figures, summed over its bundles with figures that can be true.
        smoothed_usage: smoothed over evaluations; None before the first.
        smoothed_at_ms: log time of the last evaluation that smoothed it.
    """

    node_id: str
    position: Position
    incarnation: int
    resources: Resources
    version: str
    weighted_usage: float
    bundle_ids: Sequence[str]
    reported: MessageLoad
    smoothed_usage: float | None
    smoothed_at_ms: int | None


class LoadState:
    """All bundles and nodes that were ever reported.

    Attributes:
        bundles: by bundle id.
        nodes: by node id.
    """

    def __init__(self, bundles: Iterable[BundleState] = (), nodes: Iterable[NodeState] = ()) -> None:
        """The state that the tables contain."""
        self.bundles = {bundle.bundle_id: bundle for bundle in bundles}
        self.nodes = {node.node_id: node for node in nodes}

    @classmethod
    def of_rows(cls, bundle_rows: Iterable[Row], node_rows: Iterable[Row]) -> "LoadState":
        """The state in rows of ``bundle_load`` and ``broker_load``."""
        return cls(map(_bundle_of_row, bundle_rows), map(_node_of_row, node_rows))

    def fold(self, reports: Iterable[PlacedReport], weights: ResourceWeights) -> tuple[Implausible, ...]:
        """Fold reports in. A report that was folded before changes nothing, in whichever batch it comes again.

        A report of an older incarnation than the newest one of its node does not count. Figures that cannot be true, by
        the bounds of the controller's own policy, are passed over: a bundle's sample as if the bundle had not been in
        the report, and a node's resources as if the node had not reported. The rest of the report counts.

        Returns:
            What was passed over. A report that is folded again says it again.
        """
        found: list[Implausible] = []
        for report in sorted(reports, key=lambda each: each.position):
            known = self.nodes.get(report.node_id)
            if known is not None and report.incarnation < known.incarnation:
                continue
            counted: list[BundleLoad] = []
            for load in sorted(report.bundles):
                wrong = implausible_load(message_load(load))
                if wrong is None:
                    counted.append(load)
                    self._fold_bundle(load, report)
                else:
                    found.append(Implausible(report.node_id, load.bundle_id, *wrong))
            if known is None or report.position > known.position:
                node = _node_after(known, report, counted, weights)
                wrong = implausible_report(node)
                if wrong is None:
                    self.nodes[report.node_id] = node
                else:
                    found.append(Implausible(report.node_id, "", *wrong))
        return tuple(found)

    def keep_smoothed(self, usages: Mapping[str, float], evaluated_ms: int) -> None:
        """Keep the smoothed usages of an evaluation at this log time."""
        for node_id, usage in usages.items():
            self.nodes[node_id] = self.nodes[node_id]._replace(smoothed_usage=usage, smoothed_at_ms=evaluated_ms)

    @property
    def evaluated_ms(self) -> int | None:
        """Log time of the last evaluation; None if there was none."""
        return max(
            (node.smoothed_at_ms for node in self.nodes.values() if node.smoothed_at_ms is not None), default=None
        )

    def bundle_rows(self) -> list[tuple[object, ...]]:
        """Every row of ``bundle_load``."""
        return [bundle.row() for bundle in self.bundles.values()]

    def node_rows(self) -> list[tuple[object, ...]]:
        """Every row of ``broker_load``."""
        averages = {bundle_id: bundle.averages for bundle_id, bundle in self.bundles.items()}
        return [_node_row(node, averages) for node in self.nodes.values()]

    def _fold_bundle(self, load: BundleLoad, report: PlacedReport) -> None:
        known = self.bundles.get(load.bundle_id)
        time_ms, partition, offset = report.position
        folded: Mapping[int, int] = {}
        if known is None:
            first_ms, moved_ms, before = time_ms, None, UNSEEN_BUNDLE
        elif offset <= known.folded_offsets.get(partition, -1):
            return
        else:
            first_ms, before, folded = known.first_report_time_ms, known.averages, known.folded_offsets
            moved_ms = known.moved_at_ms if known.node_id == report.node_id else time_ms
        self.bundles[load.bundle_id] = BundleState(
            load.bundle_id,
            report.node_id,
            report.position,
            first_ms,
            moved_ms,
            load,
            before.add(message_load(load)),
            {**folded, partition: offset},
        )


def implausible_report(node: NodeState) -> Beyond | None:
    """The first figure of a node's newest report that cannot be true."""
    return implausible_node(NodeLoad(node.node_id, *node.resources, traffic=node.reported))


def _node_after(
    known: NodeState | None, report: PlacedReport, counted: Sequence[BundleLoad], weights: ResourceWeights
) -> NodeState:
    """The node with a report, of whose bundles those count; they ascend by their ids."""
    reported = NO_LOAD
    for bundle in counted:
        reported = reported.plus(message_load(bundle))
    return NodeState(
        report.node_id,
        report.position,
        report.incarnation,
        report.resources,
        report.version,
        weighted_usage(report.resources, weights),
        tuple(sorted(bundle.bundle_id for bundle in report.bundles)),
        reported,
        None if known is None else known.smoothed_usage,
        None if known is None else known.smoothed_at_ms,
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

"""Bundles and nodes as rows of ``bundle_load`` and ``broker_load``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Row

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, BundleAverages, MessageLoad, TimeAverage
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

    @classmethod
    def of_row(cls, row: Row) -> "BundleState":
        """The bundle in a row of ``bundle_load``."""
        return cls(
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


class BundleSums(NamedTuple):
    """What a node owned at an evaluation.

    Attributes:
        owned_count: the bundles that it has reported last, in its newest report.
        short_term: the sum of their short-term averages, added in the order of their ids.
        long_term: likewise.
    """

    owned_count: int
    short_term: MessageLoad
    long_term: MessageLoad


class NodeState(NamedTuple):
    """A node that reported its load: a row of ``broker_load``.

    Attributes:
        node_id: the node.
        position: its newest report's place.
        incarnation: the run of the node's process that sent it.
        resources: of that report.
        version: of the node's software.
        weighted_usage: of that report, 1.0 for 100 percent.
        bundle_count: bundles in that report.
        reported: that report's figures, summed over its bundles with figures that can be true.
        sums: at the last evaluation in which the node took part; None before.
        smoothed_usage: smoothed over evaluations; None before the first.
        smoothed_at_ms: log time of the last evaluation that smoothed it.
    """

    node_id: str
    position: Position
    incarnation: int
    resources: Resources
    version: str
    weighted_usage: float
    bundle_count: int
    reported: MessageLoad
    sums: BundleSums | None = None
    smoothed_usage: float | None = None
    smoothed_at_ms: int | None = None

    def after(self, known: "NodeState | None") -> "NodeState":
        """The node of which this newest report and that former state are known.

        What evaluations have added stays. A report of an older process, or from an earlier place, changes nothing.
        """
        if known is None:
            return self
        if self.incarnation < known.incarnation or self.position <= known.position:
            return known
        return self._replace(sums=known.sums, smoothed_usage=known.smoothed_usage, smoothed_at_ms=known.smoothed_at_ms)

    def row(self) -> tuple[object, ...]:
        """The values of the table's columns, in their order."""
        sums: Sequence[object] = (None, None, None) if self.sums is None else self.sums
        return (
            self.node_id,
            self.incarnation,
            *self.position,
            self.weighted_usage,
            *self.resources,
            self.version,
            self.bundle_count,
            self.reported,
            *sums,
            self.smoothed_usage,
            self.smoothed_at_ms,
        )

    @classmethod
    def of_row(cls, row: Row) -> "NodeState":
        """The node in a row of ``broker_load``."""
        owned = row["owned_bundle_count"]
        sums = (
            None
            if owned is None
            else BundleSums(owned, MessageLoad(*row["short_term"]), MessageLoad(*row["long_term"]))
        )
        return cls(
            row["node_id"],
            _position(row),
            row["incarnation"],
            Resources(*(ResourceUsage(*row[name]) for name in Resources._fields)),
            row["version"],
            row["weighted_usage"],
            row["bundle_count"],
            MessageLoad(*row["reported"]),
            sums,
            row["smoothed_usage"],
            row["smoothed_at_ms"],
        )


def _position(row: Row) -> Position:
    return Position(row["report_time_ms"], row["report_partition"], row["report_offset"])


def _average(rule: TimeAverage, row: Row) -> TimeAverage:
    sample_count, *load = row
    return TimeAverage(rule.max_samples, sample_count, MessageLoad(*load))

"""Bundles and nodes as the reports of a whole fleet leave them: what a pipeline keeps of each."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.names import namespace_of
from controlplane.core.bundles.reports import BundleLoad


class Position(NamedTuple):
    """Where a report stands in the log."""

    append_time_ms: int
    partition: int
    offset: int

    def is_behind(self, other: "Position") -> bool:
        """Whether the report stands behind another one. Within a partition the offsets tell it, whatever clocks did."""
        if self.partition == other.partition:
            return self.offset > other.offset
        return self > other


class BundleState(NamedTuple):
    """A bundle that was reported.

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
        """Whose bundle it is."""
        return namespace_of(self.bundle_id)


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
    """A node that reported its load.

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
        if self.incarnation < known.incarnation or not self.position.is_behind(known.position):
            return known
        return self._replace(sums=known.sums, smoothed_usage=known.smoothed_usage, smoothed_at_ms=known.smoothed_at_ms)

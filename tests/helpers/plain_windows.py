"""Windows of load reports, added up one after the other: the oracle of ``bundle_load_history``."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from controlplane.core.bundles.load.averages import message_load
from controlplane.core.bundles.load.plausible import implausible_load
from controlplane.core.bundles.load.report_figures import report_figures
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from tests.helpers.placed_report import PlacedReport

Added: TypeAlias = tuple[int, tuple[float, ...], tuple[float, ...], int, int]
"""The number of samples, the sums and the maxima of their figures, the most topics and the most sessions."""


@dataclass
class PlainWindow:
    """The samples of a bundle, node and window."""

    samples: list[BundleLoad] = field(default_factory=list)

    def sums(self) -> tuple[float, ...]:
        """Of the four figures."""
        return tuple(map(sum, zip(*map(message_load, self.samples), strict=True)))

    def maxima(self) -> tuple[float, ...]:
        """Likewise."""
        return tuple(map(max, zip(*map(message_load, self.samples), strict=True)))

    def row(self) -> Added:
        """Count, sums, maxima, topics and sessions."""
        topics = max(each.topic_count for each in self.samples)
        sessions = max(each.producer_count + each.consumer_count for each in self.samples)
        return (len(self.samples), self.sums(), self.maxima(), topics, sessions)


def plain_windows(reports: Iterable[PlacedReport], window_ms: int) -> Mapping[tuple[str, str, int], PlainWindow]:
    """The windows by bundle, node and beginning, of the reports of one history in any order."""
    newest: dict[tuple[int, str], int] = {}
    windows: dict[tuple[str, str, int], PlainWindow] = defaultdict(PlainWindow)
    for report in sorted(reports, key=lambda each: (each.position.partition, each.position.offset)):
        place = (report.position.partition, report.node_id)
        if report.incarnation < newest.get(place, report.incarnation):
            continue
        if _is_plausible(report):
            newest[place] = report.incarnation
        start_ms = report.position.append_time_ms // window_ms * window_ms
        for bundle in report.bundles:
            if implausible_load(message_load(bundle)) is None:
                windows[bundle.bundle_id, report.node_id, start_ms].samples.append(bundle)
    return windows


def _is_plausible(placed: PlacedReport) -> bool:
    bundles = tuple(placed.bundles)
    report = LoadReport(placed.node_id, placed.incarnation, 0, *placed.resources, (), "1", 0, bundles, ())
    return report_figures(report, ResourceWeights()).is_plausible


def added_up(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, int], Added]:
    """The parts of windows, added up."""
    parts: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        parts.setdefault((row["bundle_id"], row["node_id"], row["window_start_ms"]), []).append(row)
    return {
        key: (
            sum(row["sample_count"] for row in of_window),
            tuple(map(sum, zip(*(row["sums"].values() for row in of_window), strict=True))),
            tuple(map(max, zip(*(row["maxima"].values() for row in of_window), strict=True))),
            max(row["topic_count"] for row in of_window),
            max(row["session_count"] for row in of_window),
        )
        for key, of_window in parts.items()
    }

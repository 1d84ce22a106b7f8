"""When a node reports its load: after a noticeable change, and after a while in any case.

It is Pulsar's ``needBrokerDataUpdate``, in both load managers. The rule is asked at short intervals and keeps reports
rare while nothing happens.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.ieee import greater
from controlplane.core.bundles.load.resource_usage import ResourceWeights, measured_usage
from controlplane.core.bundles.load.smoothed_node import SmoothedNode
from controlplane.core.bundles.load.view import NodeLoad
from controlplane.core.bundles.settings.allowed import ANY_NUMBER, NOT_NEGATIVE, PERCENT, POSITIVE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable

_MS_PER_MINUTE: Final = 60_000
WITHDRAWAL_INTERVAL_MS: Final = 10_000
"""Least time between two deletions of a node's stored report (the extensible manager's tombstones)."""


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Settings of the rule. The defaults are Pulsar's.

    Attributes:
        threshold_percent: greatest change without a report: percent of the former traffic and number of bundles, and
            percentage points of the usage.
        interval_ms: time between two evaluations of the rule.
        max_interval_min: after this time a node reports without a change.
        weights: weights of the resources; in the modular manager only.
        compares_unweighted_usage: compare the greatest usage without weights, the heap included, as Pulsar 2 does.
        ignores_unmeasurable_change: a change that is not a number hides the others, as in Pulsar. Off, it counts as
            infinite, and the node reports.
    """

    threshold_percent: float = knob("loadBalancerReportUpdateThresholdPercentage", 10, PERCENT, accepted=ANY_NUMBER)
    interval_ms: int = knob("loadBalancerReportUpdateMinIntervalMillis", 5_000, NOT_NEGATIVE)
    max_interval_min: int = knob("loadBalancerReportUpdateMaxIntervalMinutes", 15, POSITIVE)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    compares_unweighted_usage: bool = False
    ignores_unmeasurable_change: bool = False

    def __post_init__(self) -> None:
        """Refuse a threshold that is not a number: no change would ever exceed it."""
        refuse_unusable(self)


class ReportReason(Enum):
    """Why a node reports, or does not."""

    FORCED = "forced"
    """Someone asked for it: a bundle came or went, or the node has just started."""
    OLD = "old"
    """The last report is too old."""
    CHANGED = "changed"
    """The load has changed by more than the threshold."""
    UNCHANGED = "unchanged"
    """The load is nearly that of the last report."""
    DISCONNECTED = "disconnected"
    """The report could not be stored."""


class Changes(NamedTuple):
    """Differences to the last report: percent of the former figure, and percentage points of the usage."""

    message_rate: float
    throughput: float
    bundle_count: float
    usage: float


class ReportNeed(NamedTuple):
    """The answer of the rule, with its evidence.

    Attributes:
        reason: why the node reports or does not.
        changes: the differences to the last report.
        age_ms: the time since the last report.
    """

    reason: ReportReason
    changes: Changes
    age_ms: int

    @property
    def needed(self) -> bool:
        """Whether the node reports now."""
        return self.reason not in {ReportReason.UNCHANGED, ReportReason.DISCONNECTED}


def percent_change(former: float, present: float) -> float:
    """The difference in percent of the former value; from 0 to another value it is infinite."""
    if former == 0:
        return 0.0 if present == 0 else math.inf
    return 100 * abs((former - present) / former)


def need_report(
    last: NodeLoad,
    local: NodeLoad,
    age_ms: int,
    settings: ReportSettings,
    *,
    forced: bool = False,
    connected: bool = True,
) -> ReportNeed:
    """Whether a node of the modular manager reports.

    Args:
        last: the load in the last report.
        local: the latest measurement.
        age_ms: time since the last report.
        settings: the settings of the rule.
        forced: report whatever the load is.
        connected: the report can be stored. Without its session a node's report would outlive it.
    """
    last_usage, usage = (
        measured_usage(load, settings.weights, unweighted=settings.compares_unweighted_usage) for load in (last, local)
    )
    changes = _changes((last.traffic, local.traffic), (last.bundle_count, local.bundle_count), (last_usage, usage))
    return _judge(changes, age_ms, settings, forced=forced, connected=connected)


def need_smoothed_report(
    last: SmoothedNode, local: SmoothedNode, now_ms: int, settings: ReportSettings, *, forced: bool = False
) -> ReportNeed:
    """Whether a node of the extensible manager reports. It compares usages without weights.

    Args:
        last: the load that was published last; it changes only when publishing has succeeded.
        local: the latest measurement.
        now_ms: the node's clock, to be compared with ``local.reported_at_ms``.
        settings: the settings of the rule.
        forced: report whatever the load is.
    """
    changes = _changes(
        (last.traffic, local.traffic),
        (last.bundle_count, local.bundle_count),
        (last.greatest_usage, local.greatest_usage),
    )
    return _judge(changes, now_ms - local.reported_at_ms, settings, forced=forced, connected=True)


def _changes(
    traffic: tuple[MessageLoad, MessageLoad], bundle_counts: tuple[int, int], usages: tuple[float, float]
) -> Changes:
    last, local = traffic
    return Changes(
        percent_change(last.message_rate_per_s, local.message_rate_per_s),
        percent_change(last.throughput_bytes_per_s, local.throughput_bytes_per_s),
        percent_change(*bundle_counts),
        100.0 * abs(usages[0] - usages[1]),
    )


def _judge(changes: Changes, age_ms: int, settings: ReportSettings, *, forced: bool, connected: bool) -> ReportNeed:
    if not connected:
        reason = ReportReason.DISCONNECTED
    elif forced:
        reason = ReportReason.FORCED
    elif age_ms > settings.max_interval_min * _MS_PER_MINUTE:
        reason = ReportReason.OLD
    elif _greatest_change(changes, settings) > settings.threshold_percent:
        reason = ReportReason.CHANGED
    else:
        reason = ReportReason.UNCHANGED
    return ReportNeed(reason, changes, age_ms)


def _greatest_change(changes: Changes, settings: ReportSettings) -> float:
    greatest = greater(greater(changes.message_rate, changes.throughput), greater(changes.bundle_count, changes.usage))
    return math.inf if math.isnan(greatest) and not settings.ignores_unmeasurable_change else greatest


def withdrawal_due(withdrawn_at_ms: int, now_ms: int) -> bool:
    """Whether a node deletes its stored report now, because a bundle has come or gone; at most once in ten seconds."""
    return now_ms - withdrawn_at_ms >= WITHDRAWAL_INTERVAL_MS

"""When a node reports: by change, by age, on demand."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD, MessageLoad
from controlplane.core.bundles.load.report_rule import (
    ReportReason,
    ReportSettings,
    need_report,
    need_smoothed_report,
    percent_change,
    withdrawal_due,
)
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.smoothed_node import NO_MEASUREMENT, SmoothingSettings, smoothed
from controlplane.core.bundles.load.view import NodeLoad, Resources
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.errors import ConfigurationError

SETTINGS = ReportSettings()
LAST = NodeLoad(
    "a", cpu=ResourceUsage(40, 100), traffic=MessageLoad(1_000.0, 1_000.0, 100.0, 100.0), bundle_count=10, topic_count=3
)
MINUTE_MS = 60_000


def test_nothing_is_reported_while_nothing_changes() -> None:
    """Reports that say nothing new would load the store and every reader of it."""
    need = need_report(LAST, LAST, 15 * MINUTE_MS, SETTINGS)
    assert (need.needed, need.reason) == (False, ReportReason.UNCHANGED)


def test_old_report_is_replaced_after_the_interval_not_at_it() -> None:
    """The interval is exceeded strictly."""
    assert need_report(LAST, LAST, 15 * MINUTE_MS + 1, SETTINGS).reason is ReportReason.OLD


@pytest.mark.parametrize(
    ("local", "reason"),
    [
        (replace(LAST, cpu=ResourceUsage(50, 100)), ReportReason.UNCHANGED),
        (replace(LAST, cpu=ResourceUsage(51, 100)), ReportReason.CHANGED),
        (replace(LAST, memory=ResourceUsage(90, 100)), ReportReason.UNCHANGED),
        (replace(LAST, bundle_count=11), ReportReason.UNCHANGED),
        (replace(LAST, bundle_count=12), ReportReason.CHANGED),
        (replace(LAST, bundle_count=8), ReportReason.CHANGED),
        (replace(LAST, traffic=MessageLoad(2_000.0, 0.0, 200.0, 0.0)), ReportReason.UNCHANGED),
        (replace(LAST, traffic=MessageLoad(1_300.0, 1_000.0, 100.0, 100.0)), ReportReason.CHANGED),
        (replace(LAST, traffic=MessageLoad(1_000.0, 1_000.0, 100.0, 121.0)), ReportReason.CHANGED),
    ],
)
def test_change_above_ten_percent_is_reported(local: NodeLoad, reason: ReportReason) -> None:
    """Ten percent exactly is no news; usage counts in percentage points, and the heap not at all."""
    assert need_report(LAST, local, 0, SETTINGS).reason is reason


def test_first_load_is_an_infinite_change() -> None:
    """From nothing to something there is no percentage."""
    need = need_report(replace(LAST, bundle_count=0), LAST, 0, SETTINGS)
    assert need.changes.bundle_count == math.inf
    assert need.needed
    assert percent_change(0.0, 0.0) == 0.0


def test_forced_report_needs_no_change_but_a_session() -> None:
    """A report without a session would outlive its node."""
    assert need_report(LAST, LAST, 0, SETTINGS, forced=True).reason is ReportReason.FORCED
    need = need_report(LAST, LAST, 0, SETTINGS, forced=True, connected=False)
    assert (need.needed, need.reason) == (False, ReportReason.DISCONNECTED)


def test_weights_decide_which_change_counts_and_pulsar_2_has_none() -> None:
    """Direct memory weighs nothing by default; Pulsar 2 compares the unweighted maximum."""
    last, local = replace(LAST, cpu=ResourceUsage(0, 100)), replace(LAST, direct_memory=ResourceUsage(80, 100))
    local = replace(local, cpu=ResourceUsage(0, 100))
    assert not need_report(last, local, 0, SETTINGS).needed
    assert need_report(last, local, 0, replace(SETTINGS, compares_unweighted_usage=True)).needed
    heap = replace(LAST, memory=ResourceUsage(80, 100))
    assert need_report(LAST, heap, 0, replace(SETTINGS, compares_unweighted_usage=True)).needed
    assert need_report(last, local, 0, replace(SETTINGS, weights=ResourceWeights(direct_memory=1.0))).needed


def test_unmeasurable_change_is_reported_by_us_and_hidden_by_pulsar() -> None:
    """There a NaN is greater than nothing, so that a node with one such figure stops to report changes."""
    local = replace(LAST, traffic=MessageLoad(math.nan, 0.0, 0.0, 0.0), bundle_count=100)
    assert need_report(LAST, local, 0, SETTINGS).reason is ReportReason.CHANGED
    assert not need_report(LAST, local, 0, replace(SETTINGS, ignores_unmeasurable_change=True)).needed


def test_extensible_node_compares_unweighted_usage_and_its_own_time() -> None:
    """The weights are in its averages; the report's age is that of its own last report."""
    busy = Resources(cpu=ResourceUsage(40, 100), direct_memory=ResourceUsage(80, 100))
    last = smoothed(NO_MEASUREMENT, busy, NO_LOAD, (1, 1), SmoothingSettings(), 1)
    last = replace(last, reported_at_ms=1)
    local = smoothed(last, busy._replace(direct_memory=ResourceUsage(91, 100)), NO_LOAD, (1, 1), SmoothingSettings(), 2)
    assert need_smoothed_report(last, local, 2, SETTINGS).reason is ReportReason.CHANGED
    assert need_smoothed_report(last, last, 15 * MINUTE_MS + 1, SETTINGS).reason is ReportReason.UNCHANGED
    assert need_smoothed_report(last, last, 15 * MINUTE_MS + 2, SETTINGS).reason is ReportReason.OLD
    measured_since = replace(last, updated_at_ms=15 * MINUTE_MS)
    assert need_smoothed_report(last, measured_since, 15 * MINUTE_MS + 2, SETTINGS).reason is ReportReason.OLD
    assert need_smoothed_report(last, last, 2, SETTINGS, forced=True).reason is ReportReason.FORCED


def test_stored_report_is_withdrawn_at_most_once_in_ten_seconds() -> None:
    """A node that takes a hundred bundles would delete its report a hundred times."""
    assert not withdrawal_due(1_000, 10_999)
    assert withdrawal_due(1_000, 11_000)


def test_threshold_that_is_not_a_number_is_refused() -> None:
    """No change is greater than it."""
    with pytest.raises(ConfigurationError, match="number"):
        ReportSettings(threshold_percent=math.nan)

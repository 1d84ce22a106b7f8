"""What a node makes of its measurements: totals, gains and losses, maxima and its own averages."""

import math
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.measured_node import measured, reported
from controlplane.core.bundles.load.resource_usage import (
    ResourceWeights,
    greatest_usage,
    greatest_usage_in_64_bits,
    percent_usage,
    weighted_usage,
    weighted_usage_with_memory,
)
from controlplane.core.bundles.load.smoothed_node import NO_MEASUREMENT, SmoothingSettings, smoothed
from controlplane.core.bundles.load.view import NodeLoad, Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.errors import ConfigurationError

BUSY = Resources(cpu=ResourceUsage(50, 100), memory=ResourceUsage(80, 100), direct_memory=ResourceUsage(1, 3))
PULSAR = ResourceWeights(keeps_infinite_usage=True)


def sample(bundle_id: str, figure: float = 1.0) -> BundleLoad:
    """A bundle whose every figure is ``figure``."""
    return BundleLoad(bundle_id, figure, figure, figure, figure, int(figure), int(figure), int(figure), 0)


def test_gains_and_losses_are_kept_until_the_report() -> None:
    """A reader of reports only would miss a bundle that came and went between two of them."""
    load = measured(NodeLoad("a"), BUSY, [sample("x"), sample("y")])
    load = measured(load, BUSY, [sample("y"), sample("z")])
    load = measured(load, BUSY, [sample("z")])
    assert (load.bundles, load.bundle_gains, load.bundle_losses) == (("z",), ("x", "y", "z"), ("x", "y"))
    load = reported(load, 7)
    assert (load.bundles, load.bundle_gains, load.bundle_losses, load.updated_at_ms) == (("z",), (), (), 7)


def test_totals_are_sums_in_the_order_of_the_report() -> None:
    """Another order has another sum in its last bits."""
    figures = [0.1, 0.2, 0.3, 1e16, 1.0, 1.0]
    load = measured(NodeLoad("a"), BUSY, [sample(str(number), each) for number, each in enumerate(figures)])
    total = 0.0
    for figure in figures:
        total += figure
    assert load.traffic == MessageLoad(total, total, total, total)
    assert total != math.fsum(figures)
    assert (load.bundle_count, load.topic_count, load.consumer_count) == (6, 10**16 + 2, 10**16 + 2)


def test_maxima_differ_in_precision_and_in_the_heap() -> None:
    """The modular maximum is divided in 32 bits, the extensible one in 64; only the latter weighs the heap."""
    third = Resources(cpu=ResourceUsage(1, 3))
    assert greatest_usage(third) != greatest_usage_in_64_bits(third) == weighted_usage(third, PULSAR)
    assert greatest_usage(BUSY) == 0.5
    heap = ResourceWeights(memory=1.0)
    assert (weighted_usage(BUSY, heap), weighted_usage_with_memory(BUSY, heap)) == (0.5, 0.8)
    assert weighted_usage_with_memory(BUSY, ResourceWeights()) == 0.5


@pytest.mark.parametrize(
    ("usage", "limit", "ours", "original"),
    [
        (1e300, 1.0, (2 - 2**-23) * 2.0**127, math.inf),
        (math.inf, 1.0, (2 - 2**-23) * 2.0**127, math.inf),
        (1.0, 1e-60, 0.0, math.inf),
        (0.0, 1e-60, 0.0, math.nan),
        (1.0, 0.0, 0.0, 0.0),
        (1.0, -1.0, 0.0, 0.0),
        (-1.0, 2.0, -50.0, -50.0),
        (math.nan, 2.0, 0.0, math.nan),
        (1.0, math.nan, 0.0, 0.0),
    ],
)
def test_absurd_usage_is_finite_for_us_and_as_it_is_for_pulsar(
    usage: float, limit: float, ours: float, original: float
) -> None:
    """An infinite usage never leaves a smoothed one; the profiles of Pulsar keep it for its own sake."""
    resource = ResourceUsage(usage, limit)
    found = percent_usage(resource, keeps_infinite=True)
    assert found == original or (math.isnan(found) and math.isnan(original))
    assert percent_usage(resource) == ours


def test_maximum_passes_over_what_is_no_number() -> None:
    """Nothing is less than NaN, and it is greater than nothing: the position of the resource must not matter."""
    node = Resources(cpu=ResourceUsage(math.nan, 1), bandwidth_in=ResourceUsage(1, 4))
    for weights in (PULSAR, ResourceWeights()):
        assert weighted_usage(node, weights) == 0.25
        assert weighted_usage(node._replace(cpu=node.bandwidth_in, bandwidth_in=node.cpu), weights) == 0.25


def test_throughput_that_no_node_has_does_not_enter_its_average() -> None:
    """Averaged, it would stay; Pulsar averages it."""
    settings = SmoothingSettings()
    node = smoothed(NO_MEASUREMENT, BUSY, MessageLoad(8.0, 0.0, 0.0, 0.0), (1, 1), settings, 1)
    broken = MessageLoad(math.nan, 0.0, 0.0, 0.0)
    kept = smoothed(node, BUSY, broken, (1, 1), settings, 2).smoothed_bytes_per_s
    assert kept == pytest.approx(8.0)
    assert smoothed(NO_MEASUREMENT, BUSY, broken, (1, 1), settings, 1).smoothed_bytes_per_s == 0.0
    original = replace(settings, averages_implausible_loads=True)
    assert math.isnan(smoothed(node, BUSY, broken, (1, 1), original, 2).smoothed_bytes_per_s)


def test_misspelt_weight_counts_where_the_new_name_has_its_default() -> None:
    """Old configurations keep working; the new name wins."""
    assert ResourceWeights(former_bandwidth_in=0.5).inbound == 0.5
    assert ResourceWeights(bandwidth_in=0.7, former_bandwidth_in=0.5).inbound == 0.7
    assert (ResourceWeights().inbound, ResourceWeights(former_bandwidth_out=2.0).outbound) == (1.0, 2.0)
    with pytest.raises(ConfigurationError, match="0 or greater"):
        ResourceWeights(former_bandwidth_out=math.nan)


def test_averages_of_a_node_start_anew_after_clear() -> None:
    """A load with a bundle that is gone must not be used; the first measurement replaces the assumed full load."""
    settings = SmoothingSettings(history_weight=0.75)
    traffic = MessageLoad(3.0, 5.0, 0.0, 0.0)
    assert (NO_MEASUREMENT.greatest_usage, NO_MEASUREMENT.smoothed_usage) == (1.0, 1.0)
    first = smoothed(NO_MEASUREMENT, BUSY, traffic, (2, 9), settings, 5)
    assert (first.smoothed_usage, first.smoothed_bytes_per_s, first.updated_at_ms) == (0.5, 8.0, 5)
    idle = BUSY._replace(cpu=ResourceUsage(10, 100))
    second = smoothed(first, idle, MessageLoad(0.0, 0.0, 0.0, 0.0), (2, 9), settings, 6)
    assert second.smoothed_usage == 0.5 * 0.75 + (1 - 0.75) * weighted_usage_with_memory(idle, ResourceWeights())
    assert (second.smoothed_bytes_per_s, second.greatest_usage) == (6.0, greatest_usage_in_64_bits(idle))
    assert smoothed(replace(NO_MEASUREMENT), idle, traffic, (1, 1), settings, 7).smoothed_bytes_per_s == 8.0
    with pytest.raises(ConfigurationError, match="loadBalancerHistoryResourcePercentage is"):
        SmoothingSettings(history_weight=1.1)

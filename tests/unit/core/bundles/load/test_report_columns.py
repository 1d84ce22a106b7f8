"""What many reports say, over columns: what each says by itself."""

from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
from hypothesis import example, given

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.plausible import GREATEST_AMOUNT
from controlplane.core.bundles.load.report_columns import are_plausible_reports, figures_of_reports
from controlplane.core.bundles.load.report_figures import report_figures
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage

FIGURES = st.sampled_from([0.0, 1.0, GREATEST_AMOUNT / 2, GREATEST_AMOUNT, 2 * GREATEST_AMOUNT, -1.0, float("nan")])
USAGES = st.builds(
    ResourceUsage,
    st.sampled_from([0.0, 1.0, 400.0, 500.0, -1.0, 1e300, float("nan"), float("inf")]),
    st.sampled_from([4.0, 4.0, 0.0, -1.0, 1e16, 1e308, float("nan"), float("inf")]),
)


@st.composite
def reports(draw: st.DrawFn) -> LoadReport:
    """A report of which one figure or none is beyond what can be true, or any."""
    usual = ResourceUsage(1.0, 4.0)
    some = st.just(usual) if draw(st.booleans()) else USAGES | st.just(usual)
    usages = Resources(*(draw(some) for _ in Resources._fields))
    loads = draw(st.lists(st.tuples(*[FIGURES] * 4), max_size=4))
    bundles = [BundleLoad._make((f"kv/{number}", *load, 0, 0, 0, 0)) for number, load in enumerate(loads)]
    return LoadReport("n", 1, 0, *usages, (), "1", 0, tuple(bundles), ())


def report(cpu: ResourceUsage, figure: float) -> LoadReport:
    """A report of two bundles, all of whose figures are this one; its other resources can be true."""
    resources = Resources(cpu, *[ResourceUsage(1.0, 4.0) for _ in Resources._fields[1:]])
    bundles = [BundleLoad._make((f"kv/{number}", *[figure] * 4, 0, 0, 0, 0)) for number in range(2)]
    return LoadReport("n", 1, 0, *resources, (), "1", 0, tuple(bundles), ())


@given(st.lists(reports(), max_size=6))
@example([report(ResourceUsage(1.0, 4.0), GREATEST_AMOUNT)])  # each figure can be true, and their sums cannot
@example([report(ResourceUsage(-1.0, 4.0), 1.0)])
def test_verdicts_are_those_of_each_report(drawn: Sequence[LoadReport]) -> None:
    """Resources, and sums over the bundles that can be true."""
    resources = [[getattr(each, name) for name in Resources._fields] for each in drawn]
    usage, limit = (
        np.array([[getattr(each, name) for each in of_report] for of_report in resources]).reshape(-1, 5).T
        for name in ("usage", "limit")
    )
    bundles = [bundle for each in drawn for bundle in each.bundles]
    loads = np.array([[getattr(bundle, name) for bundle in bundles] for name in MessageLoad._fields]).reshape(4, -1)
    counts = np.array([len(each.bundles) for each in drawn], np.int64)
    expected = [report_figures(each, ResourceWeights()).is_plausible for each in drawn]
    assert are_plausible_reports(usage, limit, counts, loads).tolist() == expected


AMOUNTS = st.floats(0, 1e12) | FIGURES
WEIGHTS = st.builds(
    ResourceWeights,
    **{name: st.sampled_from([0.0, 0.3, 1.0, 2.5]) for name in ("cpu", "direct_memory", "bandwidth_in")},
    former_bandwidth_out=st.sampled_from([1.0, 0.7]),
    keeps_infinite_usage=st.booleans(),
)


@st.composite
def any_reports(draw: st.DrawFn) -> LoadReport:
    """A report with bundles in any order, most of whose figures can be true."""
    amounts = AMOUNTS if draw(st.booleans()) else st.floats(0, 1e12)
    limits = st.floats(0, 1e6) | st.sampled_from([1e-46, 1e-45, 3e-44, -1.0])
    usual = st.builds(lambda limit, share: ResourceUsage(limit * share, limit), limits, st.floats(0, 99))
    usages = Resources(*(draw(usual | USAGES if draw(st.booleans()) else usual) for _ in Resources._fields))
    numbers = draw(st.lists(st.integers(0, 30), max_size=12))
    ordered = sorted(numbers) if draw(st.booleans()) else numbers
    bundles = [
        BundleLoad._make((f"kv/{number:02}", *(draw(amounts) for _ in range(4)), 0, 0, 0, 0)) for number in ordered
    ]
    return LoadReport("n", 1, 0, *usages, (), "1", 0, tuple(bundles), ())


@given(st.lists(any_reports(), max_size=5), WEIGHTS)
@example([report(ResourceUsage(1.0, 3.0), 1.0)], ResourceWeights())
@example([report(ResourceUsage(9e-45, 1e-46), 1.0)], ResourceWeights())  # the limit is 0 in 32 bits
@example([report(ResourceUsage(9e-45, 1e-46), 1.0)], ResourceWeights(keeps_infinite_usage=True))
@example(
    [replace(report(ResourceUsage(1.0, 4.0), 1.0), bandwidth_out=ResourceUsage(4.0, 4.0))],
    ResourceWeights(former_bandwidth_out=0.7),
)
def test_figures_are_those_of_each_report(drawn: Sequence[LoadReport], weights: ResourceWeights) -> None:
    """To the bit: usage in 32 bits, and sums in the order of the bundles' ids."""
    bundles = [bundle for each in drawn for bundle in each.bundles]
    loads = np.array([[getattr(bundle, name) for bundle in bundles] for name in MessageLoad._fields]).reshape(4, -1)
    found = figures_of_reports(drawn, loads, weights)
    assert repr(found) == repr([report_figures(each, weights) for each in drawn])

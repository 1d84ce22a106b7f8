"""What the figures of one report say of its node."""

import random
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import NO_LOAD
from controlplane.core.bundles.load.report_figures import ReportFigures, report_figures
from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import ResourceUsage
from tests.helpers.pipeline_world import bundle_load, load_report, random_report
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad

WEIGHTS = ResourceWeights(direct_memory=0.5)
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]


@pytest.mark.parametrize("seed", range(20))
def test_a_report_is_judged_as_it_is_folded_alone(seed: int) -> None:
    """Usage, sums and figures that cannot be true are those of the plain fold."""
    source = random.Random(seed)
    report = random_report(source, "n", BUNDLE_IDS)
    bundles = [
        replaced._replace(throughput_in_bytes_per_s=source.choice([1.0, -1.0, 1e300])) for replaced in report.bundles
    ]
    cpu = source.choice([report.cpu, ResourceUsage(1e300, 100.0)])
    report = replace(report, bundles=tuple(bundles), cpu=cpu)
    plain = PlainLoad()
    resources = Resources(*(getattr(report, name) for name in Resources._fields))
    wrong = plain.fold([PlacedReport(Position(1, 0, 1), "n", 1, resources, "1", report.bundles)], WEIGHTS)
    found = report_figures(report, WEIGHTS)
    assert sorted(found.implausible) == sorted(wrong)
    assert found.is_plausible == ("n" in plain.nodes)
    if found.is_plausible:
        assert (found.weighted_usage, found.reported) == (plain.nodes["n"].weighted_usage, plain.nodes["n"].reported)


def test_a_report_without_bundles_has_no_loads() -> None:
    """A node that owns nothing has its usage."""
    report = load_report("n", cpu_percent=40)
    expected = ReportFigures(0, weighted_usage(report, WEIGHTS), NO_LOAD, is_plausible=True, implausible=())
    assert report_figures(report, WEIGHTS) == expected
    wrong = load_report("n", [bundle_load("a/b", bytes_per_s=-1)])
    assert report_figures(wrong, WEIGHTS).reported == NO_LOAD

"""The order of bundles by load, and the choice of the busiest ones."""

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.load_order import NearTies, by_history, by_stats, history_cells, stats_cells
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings, partition_sort, top_bundles
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.names import serves_health_checks
from controlplane.core.bundles.reports import BundleLoad

SETTINGS = TopBundlesSettings()


def sample(bundle_id: str, throughput: float, rate: float = 0.0, topics: int = 0) -> BundleLoad:
    """A bundle's sample with inbound traffic only."""
    return BundleLoad(bundle_id, rate, 0.0, throughput, 0.0, topics, 0, 0, 0)


def history(throughput: float, long_term: float = 0.0) -> BundleHistory:
    """A bundle's averages with inbound traffic only."""
    loads = (MessageLoad(throughput, 0.0, 0.0, 0.0), MessageLoad(long_term, 0.0, 0.0, 0.0))
    return BundleHistory(BundleAverages(TimeAverage(10, 1, loads[0]), TimeAverage(1_000, 1, loads[1])))


def test_samples_are_rounded_to_the_nearest_cell_and_averages_towards_zero() -> None:
    """The two classes of Pulsar do not round alike."""
    assert [stats_cells(sample("x", each))[0] for each in (49_999.0, 50_000.0, -50_000.0, -50_001.0)] == [0, 1, 0, -1]
    assert [history_cells(history(each))[0] for each in (99_999.0, 100_000.0, -99_999.0)] == [0, 1, 0]
    assert stats_cells(sample("x", 0.49999999999999994e5))[0] == 0
    assert [stats_cells(sample("x", 0.0, topics=each))[3] for each in (499, 500, -499, -500)] == [0, 1, 0, -1]
    assert [stats_cells(sample("x", 0.0, each))[2] for each in (49.9, 50.0)] == [0, 1]


def test_figures_without_a_cell_have_those_of_pulsar() -> None:
    """NaN counts as 0 there, and infinity as the greatest 64-bit number."""
    for cells in (stats_cells(sample("x", math.nan)), history_cells(history(math.nan))):
        assert cells[0] == 0
    for value, cell in ((math.inf, 2**63 - 1), (-math.inf, -(2**63)), (1e300, 2**63 - 1)):
        assert stats_cells(sample("x", value))[0] == history_cells(history(value))[0] == cell


def test_near_ties_were_equal_before_and_are_neighbours_now() -> None:
    """Before, three bundles could be ordered in a circle: each equal to the next, the first below the last."""
    loads = [history(0.0), history(100_000.0), history(200_000.0)]
    former, present = by_history(loads, NearTies.THRESHOLD), by_history(loads)
    assert [former(0, 1), former(1, 2), former(0, 2), former(2, 0)] == [0, 0, -1, 1]
    assert [present(0, 1), present(1, 2), present(2, 0)] == [-1, -1, 1]
    stats = [sample("x", 0.0), sample("y", 100_000.0, topics=501), sample("z", 0.0, topics=500)]
    assert [by_stats(stats, NearTies.THRESHOLD)(*pair) for pair in ((0, 1), (0, 2), (1, 2))] == [-1, 0, 0]


def test_long_term_decides_between_equal_short_terms() -> None:
    """And only then."""
    compare = by_history([history(1e6, 5e5), history(1e6, 9e5), history(2e6)])
    assert [compare(0, 1), compare(1, 0), compare(1, 2), compare(0, 0)] == [-1, 1, -1, 0]


figures = st.lists(st.integers(0, 12).map(lambda each: each * 60_000.0), max_size=40)


@given(figures, st.integers(-2, 45))
def test_the_greatest_are_chosen_once_each(throughputs: list[float], count: int) -> None:
    """Whatever the ties, the chosen ones are the greatest, in falling order, and no element twice."""
    compare = by_history([history(each) for each in throughputs])
    chosen = partition_sort(len(throughputs), count, compare)
    assert len(set(chosen)) == len(chosen) == max(0, min(count, len(throughputs)))
    cells = [int(each / 1e5) for each in throughputs]
    assert [cells[each] for each in chosen] == sorted(cells, reverse=True)[: len(chosen)]


@pytest.mark.parametrize("step", [1.0, -1.0, 0.0])
def test_sorted_loads_do_not_slow_the_choice_down(step: float) -> None:
    """The partition alone takes a time that grows with the square of the number of sorted elements."""
    loads = [history(1e9 + step * number * 20_000.0) for number in range(20_000)]
    started = time.process_time()
    chosen = partition_sort(len(loads), 2_000, by_history(loads))
    assert time.process_time() - started < 5
    cells = [history_cells(each)[0] for each in loads]
    assert [cells[each] for each in chosen] == sorted(cells, reverse=True)[:2_000]


def names(stats: list[BundleLoad], settings: TopBundlesSettings = SETTINGS, **policies: dict[str, str]) -> list[str]:
    """The reported bundles; namespace ``t/isolated`` has a policy."""
    chosen = top_bundles(
        stats, settings, is_isolated=lambda namespace: namespace == "t/isolated", groups=policies.get("groups", {})
    )
    return [each.bundle_id for each in chosen]


def test_busiest_bundles_are_reported_least_loaded_first() -> None:
    """The transfer shedder tries them in this order."""
    stats = [sample(f"t/n/{each}", each * 1e6) for each in (3, 1, 4, 2, 5)]
    assert names(stats, replace(SETTINGS, max_bundles=3)) == ["t/n/3", "t/n/4", "t/n/5"]
    assert len(names(stats, replace(SETTINGS, max_bundles=0))) == 5


def test_bundles_that_must_not_move_are_not_reported() -> None:
    """Those of the system and of health checks never, those with policies unless they are asked for."""
    kept = ["pulsar/other/0", "pulsar/b1/0", "sla-monitor/a:b:1/0", "t/n/0"]
    left_out = ["pulsar/system/0", "pulsar/b1:8080/0", "sla-monitor/b1:8080/0", "t/isolated/0", "t/group/0", "t/out/0"]
    stats = [sample(each, 1e6) for each in (*kept, *left_out)]
    settings = replace(SETTINGS, excluded_namespaces=frozenset({"t/out"}))
    groups = {"t/group": "g", "t/n": " "}
    assert sorted(names(stats, settings, groups=groups)) == sorted(kept)
    settings = replace(settings, includes_bundles_with_policies=True)
    assert sorted(names(stats, settings, groups=groups)) == sorted([*kept, "t/isolated/0", "t/group/0"])
    assert not serves_health_checks("pulsar/c/b1:8080")


def test_idle_bundles_are_reported_by_old_versions_only() -> None:
    """Shedding one changes nothing."""
    stats = [sample("t/n/0", 0.0, rate=9.0), sample("t/n/1", 1.0)]
    assert names(stats) == ["t/n/1"]
    assert len(names(stats, replace(SETTINGS, includes_idle_bundles=True))) == 2

"""Overload and threshold shedders where no recorded answer shows the rule: Pulsar 2, quirk C, evidence, bad values."""

import math

import pytest

from controlplane.core.bundles.shedding.contract import Evidence, ShedReason, Skip, SkipReason
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.threshold import ThresholdMemory, ThresholdSettings, ThresholdShedder
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import MIB, bundle_history, loaded_node, traffic, view_of

BUNDLES = {
    "t/n/0x0_0x1": bundle_history(30),
    "t/n/0x1_0x2": bundle_history(50),
    "t/n/0x2_0x3": bundle_history(80),
    "pulsar/n1:8080/0x0_0xf": bundle_history(90),
}
BUSY = loaded_node("n1", 95, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2", "pulsar/n1:8080/0x0_0xf")
IDLE = loaded_node("n2", 10, traffic(80), "t/n/0x2_0x3")


def test_overload_names_what_was_measured() -> None:
    """A choice can be checked: the usage, the threshold, the bundle's traffic and the target."""
    (choice,) = OverloadShedder().shed(view_of(BUSY, IDLE, bundles=BUNDLES), None).choices
    assert (choice.node_id, choice.bundle_id, choice.reason) == ("n1", "t/n/0x1_0x2", ShedReason.OVERLOADED)
    ((name, measured, limit),) = choice.evidence
    assert (name, limit) == ("usage", 0.85)
    assert measured == pytest.approx(0.95)
    assert choice.traffic == 50 * MIB
    assert choice.target == pytest.approx(80 * MIB * 0.15)
    assert choice.destination is None


def test_overload_starts_at_the_threshold_itself() -> None:
    """A node at exactly 85 percent sheds."""
    at = loaded_node("n1", 85, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2")
    below = loaded_node("n1", 84.9, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2")
    shedder = OverloadShedder()
    assert shedder.shed(view_of(at, bundles=BUNDLES), None).choices
    assert not shedder.shed(view_of(below, bundles=BUNDLES), None).choices


@pytest.mark.parametrize(
    ("bundle_ids", "reason"),
    [
        (("t/n/0x0_0x1",), SkipReason.SOLE_BUNDLE),
        ((), SkipReason.NO_BUNDLES),
        (("a/b/c", "a/b/d"), SkipReason.NO_BUNDLES),
    ],
)
def test_a_node_that_cannot_shed_is_a_skip(bundle_ids: tuple[str, ...], reason: SkipReason) -> None:
    """An operator sees why an overloaded node keeps everything: one bundle, none, or none with averages."""
    shedding = OverloadShedder().shed(view_of(loaded_node("n1", 99, traffic(80), *bundle_ids), bundles=BUNDLES), None)
    assert shedding.choices == ()
    assert [(skip.reason, skip.node_id) for skip in shedding.skips] == [(reason, "n1")]


def test_pulsar_2_takes_the_busiest_bundle_of_the_cluster() -> None:
    """Its overload shedder looks at all known bundles, internal ones and those of other nodes included."""
    settings = OverloadSettings(takes_any_known_bundle=True)
    view = view_of(BUSY, IDLE, bundles=BUNDLES)
    assert OverloadShedder(settings).shed(view, None).bundles_by_node() == {"n1": ["pulsar/n1:8080/0x0_0xf"]}
    rested = view_of(BUSY, IDLE, bundles=BUNDLES, recent=frozenset({"pulsar/n1:8080/0x0_0xf"}))
    assert OverloadShedder(settings).shed(rested, None).bundles_by_node() == {"n1": ["t/n/0x2_0x3"]}


def test_pulsar_2_counts_memory_and_no_weight() -> None:
    """Its usage is the greatest of all resources, whatever their weights, and a 32-bit float."""
    node = loaded_node("n1", 10, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2", memory_percent=90)
    assert OverloadShedder(OverloadSettings(compares_unweighted_usage=True)).usage(node.load) == 0.8999999761581421
    assert OverloadShedder().usage(node.load) == pytest.approx(0.1)


def test_overload_threshold_is_a_number_from_0() -> None:
    """A negative threshold would call every node overloaded."""
    for wrong in (-1, math.nan):
        with pytest.raises(ConfigurationError, match="OverloadedThresholdPercentage is"):
            OverloadSettings(wrong)


FIVE = [loaded_node(f"n{index}", 34, traffic(600), f"t/n/{index}", f"t/n/{index}b") for index in range(5)]
NEW = loaded_node("new", 16, traffic(0))
HALVES = {f"t/n/{index}{half}": bundle_history(300) for index in range(5) for half in ("", "b")}


@pytest.mark.parametrize("again", [False, True])
def test_quirk_c_smooths_twice_in_a_cycle_that_tries_the_lower_boundary(*, again: bool) -> None:
    """With the quirk the history fades twice as fast; without it a cycle is one sample."""
    settings = ThresholdSettings(lower_boundary_enabled=True, smooths_again_for_lower_boundary=again)
    before = {node.load.node_id: 0.3 for node in (*FIVE, NEW)}
    shedding = ThresholdShedder(settings).shed(view_of(*FIVE, NEW, bundles=HALVES), ThresholdMemory(before))
    once = 0.3 * 0.9 + (1 - 0.9) * (34.0 / 100)
    twice = once * 0.9 + (1 - 0.9) * (34.0 / 100)
    assert shedding.memory.smoothed_usages["n0"] == pytest.approx(twice if again else once, rel=1e-9)


def test_lower_boundary_names_the_idle_node() -> None:
    """The reason is the node far below the mean; the target is half of the threshold."""
    settings = ThresholdSettings(lower_boundary_enabled=True)
    shedding = ThresholdShedder(settings).shed(view_of(*FIVE, NEW, bundles=HALVES), ThresholdMemory())
    (choice,) = shedding.choices
    assert (choice.node_id, choice.reason) == ("n0", ShedReason.BELOW_LOWER_BOUNDARY)
    assert choice.target == pytest.approx(600 * MIB * 0.1 * 0.5)
    assert [each.name for each in choice.evidence] == ["smoothed_usage", "least_smoothed_usage", "target_bytes_per_s"]
    assert choice.evidence[1].measured == pytest.approx(0.16)


def test_lower_boundary_itself_is_not_idle() -> None:
    """50, 50 and 12.5 percent, and 25 points: the third node is at the boundary of 37.5 less 25 percent."""
    busy = [loaded_node(f"n{index}", 50, traffic(600), f"t/n/{index}", f"t/n/{index}b") for index in range(2)]
    shedder = ThresholdShedder(ThresholdSettings(25, lower_boundary_enabled=True))
    for percent, chosen in ((12.5, 0), (12.0, 1)):
        view = view_of(*busy, loaded_node("n2", percent, traffic(0)), bundles=HALVES)
        assert len(shedder.shed(view, ThresholdMemory()).choices) == chosen


def test_target_of_the_minimum_itself_is_shed() -> None:
    """Only what is below the minimum is too small."""
    view = view_of(loaded_node("n1", 95, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2"), IDLE, bundles=BUNDLES)
    (choice,) = ThresholdShedder(ThresholdSettings(min_throughput_mib_per_s=1)).shed(view, ThresholdMemory()).choices
    for least, count in ((choice.target, 1), (math.nextafter(choice.target, math.inf), 0)):
        settings = ThresholdSettings(min_throughput_mib_per_s=least / MIB)
        assert len(ThresholdShedder(settings).shed(view, ThresholdMemory()).choices) == count


def test_mean_is_summed_in_the_order_of_the_view() -> None:
    """The last bit of a mean decides at its edge."""
    nodes = [loaded_node(f"n{percent}", percent, traffic(1)) for percent in (33, 16, 64)]
    shedding = ThresholdShedder().shed(view_of(*nodes, bundles={}), ThresholdMemory())
    assert shedding.figures["mean_usage"] == (0.33 + 0.16 + 0.64) / 3 != (0.64 + 0.16 + 0.33) / 3


def test_small_target_is_a_skip_with_its_figures() -> None:
    """A node with too little to shed stays as it is, and the skip says how much it was."""
    quiet = loaded_node("n1", 95, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2")
    settings = ThresholdSettings(min_throughput_mib_per_s=1_000)
    shedding = ThresholdShedder(settings).shed(view_of(quiet, IDLE, bundles=BUNDLES), ThresholdMemory())
    (skip,) = shedding.skips
    assert (skip.reason, skip.node_id) == (SkipReason.SMALL_TARGET, "n1")
    assert skip.evidence[1].limit == 1_000 * MIB


def test_history_of_an_absent_node_stays_until_it_is_dropped() -> None:
    """A node that misses a cycle goes on where it was; one that has left starts anew."""
    shedder = ThresholdShedder()
    memory = ThresholdMemory({"n1": 0.5, "gone": 0.7})
    after = shedder.shed(view_of(BUSY, IDLE, bundles=BUNDLES), memory).memory
    assert after.smoothed_usages["gone"] == 0.7
    assert shedder.retain(after, frozenset({"n1", "n2"})).smoothed_usages.keys() == {"n1", "n2"}


def test_no_load_at_all_is_a_skip() -> None:
    """Nothing is above a mean of 0, and a view without nodes has no load."""
    shedder = ThresholdShedder()
    for view in (view_of(bundles={}), view_of(loaded_node("n1", 0, traffic(0)), bundles={})):
        assert shedder.shed(view, ThresholdMemory()).skips == (Skip(SkipReason.NO_LOAD),)


def test_a_target_that_is_not_a_number_sheds_one_bundle() -> None:
    """As in the original, whose comparisons with NaN are false: the node is not skipped, and the first bundle goes."""
    broken = loaded_node("n1", 95, traffic(math.nan), "t/n/0x0_0x1", "t/n/0x1_0x2")
    view = view_of(broken, IDLE, bundles=BUNDLES)
    assert OverloadShedder().shed(view, None).bundles_by_node() == {"n1": ["t/n/0x1_0x2"]}
    assert ThresholdShedder().shed(view, ThresholdMemory()).bundles_by_node() == {"n1": ["t/n/0x1_0x2"]}


def test_a_bundle_without_a_number_is_the_busiest() -> None:
    """NaN is above every number in the original's order, so such a bundle goes first, and alone."""
    bundles = {**BUNDLES, "t/n/0x0_0x1": bundle_history(math.nan)}
    assert OverloadShedder().shed(view_of(BUSY, bundles=bundles), None).bundles_by_node() == {"n1": ["t/n/0x0_0x1"]}


def test_evidence_of_the_threshold_is_mean_plus_distance() -> None:
    """The limit that an operator compares with is the mean and the threshold."""
    shedding = ThresholdShedder().shed(view_of(BUSY, IDLE, bundles=BUNDLES), ThresholdMemory())
    (choice,) = shedding.choices
    mean = shedding.figures["mean_usage"]
    assert choice.evidence[0] == Evidence("smoothed_usage", shedding.memory.smoothed_usages["n1"], mean + 0.1)
    assert choice.reason is ShedReason.ABOVE_MEAN


def test_targets_are_computed_from_left_to_right() -> None:
    """The last bit of a target decides at its edge; another order of the same operations has another one."""
    busy = loaded_node("n1", 95, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2")
    (choice, *_) = OverloadShedder(OverloadSettings(37)).shed(view_of(busy, bundles=BUNDLES), None).choices
    assert choice.target == 80 * MIB * (0.95 - 0.37 + 0.05) != 80 * MIB * (0.95 - (0.37 - 0.05))
    busy = loaded_node("n1", 64, traffic(80), "t/n/0x0_0x1", "t/n/0x1_0x2")
    settings = ThresholdSettings(min_throughput_mib_per_s=1)
    view = view_of(busy, loaded_node("n2", 41, traffic(80)), bundles=BUNDLES)
    (choice, *_) = ThresholdShedder(settings).shed(view, ThresholdMemory()).choices
    mean = (0.64 + 0.41) / 2
    assert choice.target == 80 * MIB * (0.64 - mean - 0.1 + 0.05) != 80 * MIB * (0.64 - (mean + 0.1) + 0.05)

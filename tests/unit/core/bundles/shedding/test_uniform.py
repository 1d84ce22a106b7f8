"""The uniform load shedder where no recorded answer shows the rule: 32 bits, limits, bad values."""

import math

import pytest

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.shedding.contract import ShedReason, SkipReason
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import bundle_history, loaded_node, view_of


def volume_view(most: float, least: float, *bundle_bytes_per_s: float) -> LoadView:
    """Two nodes with these throughputs, and the bundles of the first."""
    names = [f"t/n/{index}" for index in range(len(bundle_bytes_per_s))]
    busy = loaded_node("busy", 0, MessageLoad(most, 0.0, 0.0, 0.0), *names)
    idle = loaded_node("idle", 0, MessageLoad(least, 0.0, 0.0, 0.0))
    bundles = {
        name: bundle_history(amount / 1_048_576.0) for name, amount in zip(names, bundle_bytes_per_s, strict=True)
    }
    return view_of(busy, idle, bundles=bundles)


def rate_view(most: float, least: float, *bundle_rates: float) -> LoadView:
    """Two nodes with these message rates, and the bundles of the first."""
    names = [f"t/n/{index}" for index in range(len(bundle_rates))]
    busy = loaded_node("busy", 0, MessageLoad(0.0, 0.0, most, 0.0), *names)
    idle = loaded_node("idle", 0, MessageLoad(0.0, 0.0, least, 0.0))
    bundles = {name: bundle_history(0, rate) for name, rate in zip(names, bundle_rates, strict=True)}
    return view_of(busy, idle, bundles=bundles)


def chosen(view: LoadView, **settings: float) -> list[str]:
    """The ids of the bundles that the first node sheds."""
    shedder = UniformLoadShedder(UniformSettings(**settings))  # type: ignore[arg-type]  # numbers of both kinds
    return shedder.shed(view, None).bundles_by_node().get("busy", [])


def test_thresholds_are_strict() -> None:
    """A difference of exactly 50 percent, and a ratio of exactly 4, are allowed."""
    assert chosen(rate_view(15_000, 10_000, 1_000, 1_000), max_share=0.5) == []
    assert chosen(rate_view(15_001, 10_000, 1_000, 1_000), max_share=0.5) == ["t/n/0", "t/n/1"]
    assert chosen(volume_view(4e8, 1e8, 2e7, 2e7)) == []
    assert chosen(volume_view(4.01e8, 1e8, 2e7, 2e7)) == ["t/n/0", "t/n/1"]


def test_difference_is_computed_from_left_to_right() -> None:
    """The last bit of a percentage decides at its edge; the division comes last."""
    (choice, *_) = (
        UniformLoadShedder(UniformSettings(min_messages_per_s=1)).shed(rate_view(1_100, 300, 9, 9), None).choices
    )
    assert choice.evidence[0].measured == (1_100 - 300) * 100 / 300 != (1_100 - 300) / 300 * 100


def test_message_rates_count_before_throughputs() -> None:
    """If the rates differ too much, throughputs are not looked at, though the rates are too small to move anything."""
    busy = loaded_node("busy", 0, MessageLoad(9e9, 0.0, 100.0, 0.0), "t/n/0", "t/n/1")
    idle = loaded_node("idle", 0, MessageLoad(1e6, 0.0, 10.0, 0.0))
    view = view_of(busy, idle, bundles={"t/n/0": bundle_history(5, 5), "t/n/1": bundle_history(5, 5)})
    shedding = UniformLoadShedder().shed(view, None)
    assert shedding.choices == ()
    assert [skip.reason for skip in shedding.skips] == [SkipReason.SMALL_TARGET]
    without_rates = UniformLoadShedder(UniformSettings(rate_difference_percent=0)).shed(view, None)
    assert {choice.reason for choice in without_rates.choices} == {ShedReason.UNEVEN_THROUGHPUT}


def test_a_bundle_that_exceeds_the_rest_is_passed_over() -> None:
    """Bundles are tried by size; a smaller one may fit where a greater one did not."""
    assert chosen(rate_view(21_000, 1_000, 9_000, 3_500, 500, 400), max_share=0.2) == ["t/n/1", "t/n/2"]


def test_number_of_bundles_is_limited() -> None:
    """A limit of 0 sheds nothing, -1 is none."""
    view = rate_view(21_000, 1_000, 100, 200, 300)
    assert [len(chosen(view, max_bundles=limit)) for limit in (-1, 0, 1, 2, 9)] == [3, 0, 1, 2, 3]


def test_32_bits_cut_what_is_to_be_moved() -> None:
    """More than 2 GiB/s are to be moved: the original moves 2 GiB/s, ours what is needed."""
    view = volume_view(40e9, 1e9, 3e9, 2e9, 1e8)
    assert chosen(view, max_share=0.2) == ["t/n/0", "t/n/1", "t/n/2"]
    assert chosen(view, max_share=0.2, counts_in_32_bits=True) == ["t/n/1", "t/n/2"]


def test_32_bits_take_every_node_for_one_below_2_gib_per_s() -> None:
    """8 and 6 GB/s differ by a third only; in 32 bits the second node counts as one with 2 GiB/s."""
    view = volume_view(8e9, 6e9, 1e8, 1e8)
    assert chosen(view, throughput_ratio=2) == []
    assert chosen(view, throughput_ratio=2, counts_in_32_bits=True) == ["t/n/0", "t/n/1"]


def test_32_bits_drop_fractions() -> None:
    """A bundle counts without its fraction, so that one more fits than should."""
    view = rate_view(5_001, 1, 333.9, 333.9, 333)
    assert chosen(view, max_share=0.2002) == ["t/n/0", "t/n/1", "t/n/2"]
    assert chosen(view, max_share=0.2, counts_in_32_bits=True) == ["t/n/0", "t/n/1", "t/n/2"]
    assert chosen(view, max_share=0.2) == ["t/n/0", "t/n/1"]


def test_subtraction_wraps_around() -> None:
    """A negative rate adds to what remains; a sum above 2^31 - 1 becomes negative, and then less negative ones stay."""
    view = rate_view(3e9, 1, 5, -4, -5, -6)
    assert chosen(view, max_share=1.0) == ["t/n/0", "t/n/1", "t/n/2", "t/n/3"]
    assert chosen(view, max_share=1.0, counts_in_32_bits=True) == ["t/n/0", "t/n/1", "t/n/2"]


def test_a_node_without_traffic_counts_as_1() -> None:
    """Otherwise every difference to it would be infinite."""
    shedding = UniformLoadShedder().shed(rate_view(10_001, 0, 900, 900), None)
    assert shedding.choices[0].evidence[0].measured == pytest.approx(1_000_000)


@pytest.mark.parametrize(("most", "least"), [(math.nan, math.nan), (-5.0, -9.0)])
def test_without_a_busiest_node_nothing_is_shed(most: float, least: float) -> None:
    """Throughputs that are no numbers, or are all below -1, have no greatest one: nothing fails."""
    assert chosen(volume_view(most, least, 1e6, 1e6), throughput_ratio=0.1) == []
    assert chosen(view_of(bundles={})) == []


def test_infinite_throughput_sheds_everything() -> None:
    """What is to be moved has no bound, or that of 32 bits."""
    view = volume_view(math.inf, 1e6, 1e6, 3e9)
    assert chosen(view) == ["t/n/1", "t/n/0"]
    assert chosen(view, counts_in_32_bits=True) == ["t/n/0"]


def test_a_sole_bundle_stays() -> None:
    """Moving it would only move the load."""
    shedding = UniformLoadShedder().shed(rate_view(10_001, 1_000, 100), None)
    assert [skip.reason for skip in shedding.skips] == [SkipReason.SOLE_BUNDLE]


@pytest.mark.parametrize("wrong", [{"max_share": -0.1}, {"max_share": math.nan}, {"max_bundles": -2}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    """They would move nothing, or everything."""
    with pytest.raises(ConfigurationError, match=r"^maxUnload.* is .*, allowed is"):
        UniformSettings(**wrong)  # type: ignore[arg-type]  # numbers of both kinds

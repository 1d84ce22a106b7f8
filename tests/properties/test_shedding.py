"""What always holds for the shedders, whatever the loads."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.ieee import to_int32, total_order, wrap_int32
from controlplane.core.bundles.load.plausible import plausible
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeView
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder, AvgShedderSettings
from controlplane.core.bundles.shedding.contract import Shedder
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.threshold import ThresholdMemory, ThresholdSettings, ThresholdShedder
from controlplane.core.bundles.shedding.transfer import TransferMemory, TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import MIB, bundle_history, loaded_node, traffic, view_of


@st.composite
def views(draw: st.DrawFn, amounts: st.SearchStrategy[float] | None = None) -> LoadView:
    """One to five nodes by name, with whole throughputs, so that sums are exact and their order does not count."""
    whole = st.integers(0, 60).map(float)
    nodes: list[NodeView] = []
    bundles: dict[str, BundleHistory] = {}
    for index in range(draw(st.integers(1, 5))):
        throughputs = draw(st.lists(whole if amounts is None else amounts, max_size=5))
        mine = {f"t/n/{index}-{place}": bundle_history(each, each) for place, each in enumerate(throughputs)}
        unknown = [f"t/n/{index}-unknown"] * draw(st.integers(0, 1))
        total = sum(throughputs) if amounts is None else draw(amounts)
        cpu = draw(st.integers(0, 128)) / 128 * 100
        nodes.append(loaded_node(f"n{index}", cpu, traffic(total, total), *mine, *unknown))
        bundles |= mine
    recent = draw(st.frozensets(st.sampled_from(sorted(bundles)), max_size=4)) if bundles else frozenset()
    return view_of(*nodes, bundles=bundles, recent=recent)


def threshold_settings(
    history_weights: tuple[float, ...] = (0.0, 0.5, 0.9, 1.0), boundaries: tuple[bool, ...] = (False, True)
) -> st.SearchStrategy[ThresholdSettings]:
    """Settings of the threshold shedder, with these choices of two of them."""
    return st.builds(
        ThresholdSettings,
        threshold_percent=st.sampled_from([0, 5, 10, 25]),
        history_weight=st.sampled_from(history_weights),
        min_throughput_mib_per_s=st.sampled_from([0.0, 1.0, 10.0]),
        lower_boundary_enabled=st.sampled_from(boundaries),
        smooths_again_for_lower_boundary=st.booleans(),
    )


former_usages = st.builds(
    ThresholdMemory,
    st.dictionaries(st.sampled_from(["n0", "n1", "n2", "gone"]), st.integers(0, 64).map(lambda n: n / 64)),
)
MODULAR: tuple[Shedder[LoadView, Any], ...] = (
    OverloadShedder(OverloadSettings(40)),
    ThresholdShedder(ThresholdSettings(5, min_throughput_mib_per_s=0, lower_boundary_enabled=True)),
    UniformLoadShedder(UniformSettings(10, 2, 1, 1, 0.5)),
    UniformLoadShedder(UniformSettings(10, 2, 1, 1, 0.5, counts_in_32_bits=True)),
    AvgShedder(AvgShedderSettings(low_hits=1, min_messages_per_s=1, min_throughput_bytes_per_s=1, max_share=0.5)),
    AvgShedder(AvgShedderSettings(low_hits=1, min_messages_per_s=1, plans_by_averages=True)),
)
modular = st.sampled_from(MODULAR)


@given(views(), modular)
def test_only_own_rested_bundles_are_shed_once(view: LoadView, shedder: Shedder[LoadView, Any]) -> None:
    """A choice is a known bundle of its node that has not moved recently, and nothing is chosen twice."""
    choices = shedder.shed(view, shedder.first_memory).choices
    for choice in choices:
        assert choice.bundle_id in view.nodes[choice.node_id].load.bundles
        assert choice.bundle_id in view.bundles
        assert choice.bundle_id not in view.recently_unloaded
        assert choice.evidence
        assert choice.destination != choice.node_id
    assert max(Counter(choice.bundle_id for choice in choices).values(), default=1) == 1


odd_amounts = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -0.0, 1e308, -1e308]))


@given(views(odd_amounts), modular)
def test_no_value_makes_a_shedder_fail(view: LoadView, shedder: Shedder[LoadView, Any]) -> None:
    """Negative, infinite and missing numbers give some answer, and the same one each time."""
    first = shedder.shed(view, shedder.first_memory)
    assert repr(first) == repr(shedder.shed(view, shedder.first_memory))
    kept, found = plausible(view)
    assert {each.node_id or each.bundle_id for each in found} == {*(view.nodes.keys() - kept.nodes.keys())} | {
        *(view.bundles.keys() - kept.bundles.keys())
    }
    assert plausible(kept) == (kept, ())


@given(views(), modular, st.integers(0, 2**32))
def test_bundles_of_different_traffic_are_shed_in_any_order_of_arrival(
    view: LoadView, shedder: Shedder[LoadView, Any], seed: int
) -> None:
    """The order of the known bundles only decides ties: the traffic that each node sheds is the same."""
    names = list(view.bundles)
    random.Random(seed).shuffle(names)
    shuffled = replace(view, bundles={name: view.bundles[name] for name in names})
    one, other = (shedder.shed(each, shedder.first_memory) for each in (view, shuffled))
    assert [(each.node_id, each.traffic) for each in one.choices] == [
        (each.node_id, each.traffic) for each in other.choices
    ]


@given(views(), former_usages, threshold_settings())
def test_threshold_takes_the_busiest_bundles_until_the_target(
    view: LoadView, memory: ThresholdMemory, settings: ThresholdSettings
) -> None:
    """A node's choices are its busiest bundles that are not resting, at least one, none more than the target needs."""
    shedding = ThresholdShedder(settings).shed(view, memory)
    for node_id, bundle_ids in shedding.bundles_by_node().items():
        mine = view.nodes[node_id].load.bundles
        assert len(mine) > 1
        free = [name for name in mine if name in view.bundles and name not in view.recently_unloaded]
        free.sort(key=lambda name: -view.bundles[name].averages.short_term.load.throughput_bytes_per_s)
        assert bundle_ids == free[: len(bundle_ids)]
        choices = [choice for choice in shedding.choices if choice.node_id == node_id]
        target = choices[0].target
        assert target >= settings.min_throughput_mib_per_s * MIB
        assert len(choices) == 1 or sum(choice.traffic for choice in choices[:-1]) < target


@given(views(), former_usages, threshold_settings(boundaries=(False,)))
def test_only_nodes_above_the_band_shed(view: LoadView, memory: ThresholdMemory, settings: ThresholdSettings) -> None:
    """Without the lower boundary only nodes at or above mean + threshold give away, and the evidence says so."""
    shedding = ThresholdShedder(settings).shed(view, memory)
    for choice in shedding.choices:
        smoothed = choice.evidence[0]
        assert smoothed.measured == shedding.memory.smoothed_usages[choice.node_id]
        assert smoothed.limit == shedding.figures["mean_usage"] + settings.threshold_percent / 100
        assert smoothed.measured >= smoothed.limit


@given(views(), former_usages, threshold_settings())
def test_smoothing_mixes_former_and_present_usage(
    view: LoadView, memory: ThresholdMemory, settings: ThresholdSettings
) -> None:
    """The smoothed usage lies between the former one and the report's, and is the report's for a node that is new."""
    after = ThresholdShedder(settings).shed(view, memory).memory.smoothed_usages
    assert after.keys() == view.nodes.keys() | memory.smoothed_usages.keys()
    for node_id, node in view.nodes.items():
        usage = weighted_usage(node.load, settings.weights)
        old = memory.smoothed_usages.get(node_id, usage)
        assert min(old, usage) - 1e-12 <= after[node_id] <= max(old, usage) + 1e-12
        if node_id not in memory.smoothed_usages:
            assert after[node_id] == pytest.approx(usage, rel=1e-12)


@given(
    views(),
    former_usages,
    threshold_settings(history_weights=(0.0, 0.5), boundaries=(False,)),
    st.randoms(use_true_random=False),
)
def test_shedding_does_not_depend_on_the_order_of_nodes(
    view: LoadView, memory: ThresholdMemory, settings: ThresholdSettings, drawn: random.Random
) -> None:
    """The same nodes in another order give the same choices where floating-point sums do not depend on the order."""
    names = list(view.nodes)
    drawn.shuffle(names)
    shuffled = replace(view, nodes={name: view.nodes[name] for name in names})
    one, other = (ThresholdShedder(settings).shed(each, memory).bundles_by_node() for each in (view, shuffled))
    assert one == other


@pytest.mark.parametrize("boundary", [True, False])
def test_lower_boundary_uses_an_idle_node(*, boundary: bool) -> None:
    """Five nodes at 34 and one new at 16: the published default leaves it idle, the lower boundary does not."""
    names = [f"t/n/{index}-{place}" for index in range(5) for place in range(2)]
    busy = [loaded_node(f"n{index}", 34, traffic(600), *names[2 * index : 2 * index + 2]) for index in range(5)]
    view = view_of(*busy, loaded_node("new", 16, traffic(0)), bundles={name: bundle_history(300) for name in names})
    settings = ThresholdSettings(lower_boundary_enabled=boundary)
    shedding = ThresholdShedder(settings).shed(view, ThresholdMemory())
    assert list(shedding.bundles_by_node()) == (["n0"] if boundary else [])


def test_reaching_the_target_exactly_is_enough() -> None:
    """A node that has given away exactly its target gives away no further bundle: each move costs somebody."""
    # The lower boundary gives away half of the threshold, here half of the throughput: one of two equal bundles.
    settings = ThresholdSettings(threshold_percent=100, lower_boundary_enabled=True)
    names = [f"t/n/{index}-{place}" for index in range(2) for place in range(2)]
    busy = [loaded_node(f"n{index}", 200, traffic(40), *names[2 * index : 2 * index + 2]) for index in range(2)]
    view = view_of(*busy, loaded_node("new", 0, traffic(0)), bundles={name: bundle_history(20) for name in names})
    (choice,) = ThresholdShedder(settings).shed(view, ThresholdMemory()).choices
    assert (choice.bundle_id, choice.target) == ("t/n/0-0", 20 * MIB)


def test_published_threshold_defaults() -> None:
    """Shedding starts with the published numbers: 10 points, 0.9, 10 MiB, weights 1, 0, 1, 1."""
    settings = ThresholdSettings()
    assert (settings.threshold_percent, settings.history_weight, settings.min_throughput_mib_per_s) == (10, 0.9, 10.0)
    assert not settings.lower_boundary_enabled
    assert settings.weights == ResourceWeights(cpu=1.0, direct_memory=0.0, bandwidth_in=1.0, bandwidth_out=1.0)


@pytest.mark.parametrize(
    ("wrong", "knob"),
    [
        ({"threshold_percent": -1}, "loadBalancerBrokerThresholdShedderPercentage"),
        ({"history_weight": 1.5}, "loadBalancerHistoryResourcePercentage"),
        ({"min_throughput_mib_per_s": -1}, "loadBalancerBundleUnloadMinThroughputThreshold"),
    ],
)
def test_impossible_threshold_settings_are_refused(wrong: dict[str, Any], knob: str) -> None:
    """Settings that would turn the rule upside down must not start."""
    with pytest.raises(ConfigurationError, match=f"{knob} is .*, allowed is"):
        ThresholdSettings(**wrong)


@given(views())
def test_uniform_moves_at_most_a_share_of_the_difference(view: LoadView) -> None:
    """One node sheds, and never more than the share: with half of the difference it would not become the idler one."""
    shedding = UniformLoadShedder(UniformSettings(10, 2, 0, 0, 0.5)).shed(view, None)
    assert len(shedding.bundles_by_node()) <= 1
    assert sum(choice.traffic for choice in shedding.choices) <= max((c.target for c in shedding.choices), default=0)


@given(views())
def test_a_shed_bundle_is_placed_where_it_was_planned(view: LoadView) -> None:
    """Both roles of the rule fit together; if the planned node is gone, the others are equally good."""
    shedder = AvgShedder(AvgShedderSettings(low_hits=1, min_messages_per_s=1, max_share=0.5))
    shedding = shedder.shed(view, shedder.first_memory)
    for choice in shedding.choices:
        assert shedder.best(choice.bundle_id, view.nodes.keys(), view, shedding.memory) == (choice.destination,)
        rest = view.nodes.keys() - {str(choice.destination)}
        assert shedder.best(choice.bundle_id, rest, view, shedding.memory) == tuple(sorted(rest))


@st.composite
def transfer_views(draw: st.DrawFn) -> TransferView:
    """Two to six nodes with whole figures, all of them with fresh loads."""
    loads, top = {}, {}
    for index in range(draw(st.integers(2, 6))):
        name = f"n{index}"
        bundles = sorted(draw(st.lists(st.integers(0, 50), max_size=6)))
        throughput = float(sum(bundles))
        loads[name] = StoredLoad(draw(st.integers(0, 100)) / 100, 0, throughput, throughput, 0)
        owners = [draw(st.sampled_from([index, index, index, 0])) for _ in bundles]
        top[name] = tuple(
            ReportedBundle(f"t/n/{owner}-{place}", float(each))
            for place, (owner, each) in enumerate(zip(owners, bundles, strict=True))
        )
    return TransferView(loads, frozenset(loads), 0, None, top)


transfer_settings = st.builds(
    TransferSettings,
    target_deviation=st.sampled_from([0.0, 0.05, 0.25]),
    hit_count=st.just(0),
    transfers=st.booleans(),
    max_pairs=st.integers(0, 4),
    counts_swap_gain_in_debug_mode_only=st.booleans(),
)


@given(transfer_views(), transfer_settings)
def test_transfers_are_bounded(view: TransferView, settings: TransferSettings) -> None:
    """At most so many pairs; each source keeps a reported bundle, unless bundles came back; no bundle moves twice."""
    shedding = TransferShedder(settings).shed(view, TransferMemory())
    pairs = {frozenset((each.node_id, each.destination)) for each in shedding.choices if each.destination}
    assert len(pairs) <= settings.max_pairs
    assert max(Counter(choice.bundle_id for choice in shedding.choices).values(), default=1) == 1
    for choice in shedding.choices:
        assert choice.bundle_id in {each.bundle_id for each in view.top_bundles[choice.node_id]}
        assert choice.traffic > 0
        assert choice.destination != choice.node_id
        assert (choice.destination is None) == (not settings.transfers)
    assert bool(shedding.choices) != any(not skip.node_id for skip in shedding.skips)
    assert shedding.memory.condition_hits == 0 or not shedding.choices


@given(st.lists(st.floats(), max_size=20), st.randoms(use_true_random=False))
def test_every_list_of_numbers_has_one_order(values: list[float], drawn: random.Random) -> None:
    """Also with values that are no numbers: sorting does not depend on the order of arrival."""
    shuffled = list(values)
    drawn.shuffle(shuffled)
    assert list(map(repr, sorted(values, key=total_order))) == list(map(repr, sorted(shuffled, key=total_order)))


@given(st.integers(), st.integers())
def test_32_bit_sums_are_sums_modulo_2_to_the_32(first: int, second: int) -> None:
    """Wrapping each summand or the sum makes no difference, and a value of 32 bits stays as it is."""
    assert wrap_int32(first + second) == wrap_int32(wrap_int32(first) + wrap_int32(second))
    assert -(2**31) <= wrap_int32(first) < 2**31
    assert to_int32(float(wrap_int32(first))) == wrap_int32(first)


@given(st.lists(st.builds(MessageLoad, *[st.integers(0, 9).map(float)] * 4), max_size=4))
def test_views_do_not_change(loads: list[MessageLoad]) -> None:
    """A shedder leaves the view and the memory that it was given as they were."""
    nodes = [loaded_node(f"n{index}", 20 * index, load, f"t/n/{index}") for index, load in enumerate(loads)]
    view = view_of(*nodes, bundles={f"t/n/{index}": bundle_history(1, 1) for index in range(len(loads))})
    before = repr(view)
    for shedder in MODULAR:
        memory = shedder.first_memory
        former = repr(memory)
        shedder.shed(view, memory)
        assert (repr(view), repr(memory)) == (before, former)

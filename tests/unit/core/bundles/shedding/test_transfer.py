"""The transfer shedder: gates, conditions, pairs, swaps with and without quirk D, policies."""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import pytest

from controlplane.core.bundles.load.plausible import Implausible
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.shedding.contract import ShedReason, SkipReason
from controlplane.core.bundles.shedding.transfer import TransferMemory, TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.transfer_spread import offload_target, overload, spread_of, underload
from controlplane.core.bundles.shedding.transfer_view import (
    ReportedBundle,
    TransferView,
    plausible_transfers,
)
from controlplane.errors import ConfigurationError

AT_ONCE = TransferSettings(hit_count=0)
NOW_MS = 10_000_000


def smoothed(usage: float, throughput: float, age_ms: int = 0) -> StoredLoad:
    """A load whose throughput is as in the latest sample."""
    return StoredLoad(usage, 0, throughput, throughput, NOW_MS - age_ms)


def view_of(nodes: Mapping[str, tuple[float, float, tuple[float, ...]]], namespace: str = "t/n") -> TransferView:
    """Nodes by name: usage, throughput, and the throughputs of the reported bundles ``<namespace>/<node>-<place>``."""
    return TransferView(
        loads={name: smoothed(usage, throughput) for name, (usage, throughput, _) in nodes.items()},
        registered=frozenset(nodes),
        top_bundles={
            name: tuple(ReportedBundle(f"{namespace}/{name}-{place}", each) for place, each in enumerate(bundles))
            for name, (_, _, bundles) in nodes.items()
        },
        now_ms=NOW_MS,
        checks=None,
    )


def moves(view: TransferView, settings: TransferSettings = AT_ONCE) -> list[str]:
    """The choices of the first cycle as texts."""
    shedding = TransferShedder(settings).shed(view, TransferMemory())
    return [f"{each.bundle_id}: {each.node_id} > {each.destination}" for each in shedding.choices]


def cycle_skip(view: TransferView, settings: TransferSettings = AT_ONCE, **memory: object) -> SkipReason:
    """Why the whole cycle chose nothing."""
    shedding = TransferShedder(settings).shed(view, TransferMemory(**memory))  # type: ignore[arg-type]  # its fields
    assert shedding.choices == ()
    (reason,) = (skip.reason for skip in shedding.skips if not skip.node_id)
    return reason


UNEVEN = view_of({"idle": (0.1, 10, ()), "busy": (0.9, 90, (10, 20, 30, 30))})


def test_the_condition_has_to_hold_more_often_than_the_count() -> None:
    """By default in the fourth cycle in a row; a cycle that chooses starts the count anew."""
    shedder = TransferShedder()
    memory = shedder.first_memory
    for hits in (1, 2, 3):
        shedding = shedder.shed(UNEVEN, memory)
        memory = shedding.memory
        assert (shedding.choices, memory.condition_hits) == ((), hits)
    shedding = shedder.shed(UNEVEN, memory)
    assert shedding.choices
    assert shedding.memory.condition_hits == 0
    even = view_of({"a": (0.5, 50, (25, 25)), "b": (0.5, 50, (25, 25))})
    assert shedder.shed(even, memory).memory.condition_hits == 0


def test_a_node_rests_after_an_unload_and_its_load_grows_old() -> None:
    """The load has to be sampled so long after the unload, and so lately, to the millisecond."""
    settings = replace(AT_ONCE, cool_down_s=10, load_lifetime_s=20)
    assert cycle_skip(UNEVEN, settings, unloaded_at_ms={"busy": NOW_MS - 9_999}) is SkipReason.COOL_DOWN
    rested = TransferMemory(unloaded_at_ms={"busy": NOW_MS - 10_000})
    assert TransferShedder(settings).shed(UNEVEN, rested).choices
    for age_ms, counts in ((20_000, True), (20_001, False)):
        view = replace(UNEVEN, loads={**UNEVEN.loads, "busy": smoothed(0.9, 90, age_ms)})
        assert bool(moves(view, settings)) is counts


def test_bundles_go_until_the_target() -> None:
    """Half the difference of the loads is to be moved, 40 of 90: the least loaded bundles first, none beyond it."""
    shedding = TransferShedder(AT_ONCE).shed(UNEVEN, TransferMemory())
    assert moves(UNEVEN) == ["t/n/busy-0: busy > idle", "t/n/busy-1: busy > idle"]
    assert {each.reason for each in shedding.choices} == {ShedReason.OVERLOADED}
    assert shedding.choices[0].target == pytest.approx(40)
    assert shedding.figures["load_deviation"] == pytest.approx(0.4)
    assert shedding.figures["load_deviation_after"] == pytest.approx(0.1)


def test_one_reported_bundle_stays() -> None:
    """However much there is to move, the last one is not given away, and a sole one is not looked at."""
    assert moves(view_of({"idle": (0.0, 0, ()), "busy": (0.9, 900, (1, 2, 3))})) == [
        "t/n/busy-0: busy > idle",
        "t/n/busy-1: busy > idle",
    ]
    sole = view_of({"idle": (0.0, 0, ()), "busy": (0.9, 90, (90,))})
    assert cycle_skip(sole) is SkipReason.NO_BUNDLES
    first, _ = TransferShedder(AT_ONCE).shed(sole, TransferMemory()).skips
    assert (first.reason, first.node_id) == (SkipReason.SOLE_BUNDLE, "busy")
    assert cycle_skip(view_of({"idle": (0.0, 0, ()), "busy": (0.9, 90, ())})) is SkipReason.NO_LOAD


def test_bundles_without_traffic_stay() -> None:
    """Moving them changes nothing."""
    assert moves(view_of({"idle": (0.0, 0, ()), "busy": (0.9, 90, (0, 0, 10))})) == ["t/n/busy-2: busy > idle"]


def test_a_bundle_that_is_named_twice_moves_once() -> None:
    """By one node twice, by both nodes of a pair, by nodes of two pairs; its traffic counts once."""
    twice = view_of({"idle": (0.1, 10, ()), "busy": (0.9, 90, (10, 20, 30, 30))})
    named = twice.top_bundles["busy"]
    assert moves(replace(twice, top_bundles={"busy": (named[0], *named)})) == moves(twice)
    assert cycle_skip(replace(twice, top_bundles={"busy": (named[0], named[0])})) is SkipReason.NO_BUNDLES
    swapped = view_of({"idle": (0.1, 20, (8, 9)), "busy": (0.9, 90, (10, 42, 43))})
    assert moves(swapped)[1:] == ["t/n/idle-0: idle > busy", "t/n/idle-1: idle > busy", "t/n/busy-1: busy > idle"]
    both = {**swapped.top_bundles, "idle": (swapped.top_bundles["busy"][0], *swapped.top_bundles["idle"])}
    assert moves(replace(swapped, top_bundles=both)) == moves(swapped)
    loads = {"a": (0.0, 0, ()), "b": (0.1, 10, ()), "c": (0.8, 80, ()), "d": (0.9, 90, ())}
    shared = (ReportedBundle("t/n/x", 10), ReportedBundle("t/n/y", 60))
    pairs = replace(view_of(loads), top_bundles={"c": shared, "d": shared})
    assert moves(pairs, replace(AT_ONCE, target_deviation=0.01)) == ["t/n/x: d > a"]


def test_every_pair_is_used_once_up_to_the_limit() -> None:
    """The most loaded node exchanges with the least loaded, the next with the next."""
    nodes = {f"n{index}": (index / 10, index * 10.0, (5.0, 5.0, 5.0)) for index in range(10)}
    settings = replace(AT_ONCE, target_deviation=0.01)
    pairs = {move.partition(": ")[2] for move in moves(view_of(nodes), settings)}
    assert pairs == {"n9 > n0", "n8 > n1", "n7 > n2"}
    one = replace(settings, max_pairs=1)
    assert {move.partition(": ")[2] for move in moves(view_of(nodes), one)} == {"n9 > n0"}
    assert moves(view_of(nodes), replace(settings, max_pairs=0)) == []


def test_a_node_that_gave_nothing_leaves_its_partner_to_the_next() -> None:
    """The least loaded node stays in turn until it gets something."""
    nodes = {"idle": (0.0, 0, ()), "sole": (0.9, 90, (90.0,)), "busy": (0.8, 80, (10.0, 10.0, 60.0))}
    assert moves(view_of(nodes)) == ["t/n/busy-0: busy > idle", "t/n/busy-1: busy > idle"]


def test_conditions_are_strict() -> None:
    """Underloaded: below an eighth of the mean or of the greatest throughput; overloaded: above 85 percent, far out."""
    most = smoothed(0.5, 800)
    assert underload(smoothed(0.0499, 100), most, 0.4, 0.25) is not None
    assert underload(smoothed(0.05, 100), most, 0.4, 0.25) is None
    assert underload(smoothed(0.05, 99.9), most, 0.4, 0.25) is not None
    assert overload(smoothed(0.85, 0), 0.5, 0.25, 0.85) is None
    assert overload(smoothed(0.86, 0), 0.5, 0.25, 0.85) is not None
    assert overload(smoothed(0.86, 0), 0.61, 0.25, 0.85) is None
    at_target = view_of({"idle": (0.25, 25, ()), "busy": (0.75, 75, (5, 70))})
    assert cycle_skip(at_target) is SkipReason.HIT_COUNT
    assert moves(at_target, replace(AT_ONCE, target_deviation=0.24)) == ["t/n/busy-0: busy > idle"]


def test_an_underloaded_node_gets_bundles_though_the_deviation_is_small() -> None:
    """A new node among evenly loaded ones is filled, with its own reason."""
    nodes: dict[str, tuple[float, float, tuple[float, ...]]] = {"new": (0.01, 0.0, ())}
    nodes |= {f"n{index}": (0.30, 30.0, (3.0, 4.0, 23.0)) for index in range(9)}
    shedding = TransferShedder(AT_ONCE).shed(view_of(nodes), TransferMemory())
    assert {each.reason for each in shedding.choices} == {ShedReason.UNDERLOADED}
    assert {each.destination for each in shedding.choices} == {"new"}
    assert shedding.choices[0].evidence[0].name == "least_load"


SWAP = view_of({"idle": (0.2, 40, (10, 12, 11)), "busy": (1.0, 100, (50, 5, 45))})


def test_a_bundle_that_is_too_big_is_swapped() -> None:
    """Another 50 would make the idle node the busier one: 22 come back, which leaves 72 and 68."""
    assert moves(SWAP, replace(AT_ONCE, max_pairs=1)) == [
        "t/n/idle-0: idle > busy",
        "t/n/idle-1: idle > busy",
        "t/n/busy-0: busy > idle",
        "t/n/busy-1: busy > idle",
    ]


def test_quirk_d_forgets_what_came_back() -> None:
    """Without debug mode the returned throughput does not count, so that fewer bundles fit into the target."""
    quirk = replace(AT_ONCE, max_pairs=1, counts_swap_gain_in_debug_mode_only=True)
    assert moves(SWAP, quirk) == [
        "t/n/idle-0: idle > busy",
        "t/n/idle-1: idle > busy",
        "t/n/busy-0: busy > idle",
    ]
    assert moves(SWAP, replace(quirk, debug_mode=True)) == moves(SWAP, replace(AT_ONCE, max_pairs=1))
    after = [
        TransferShedder(settings).shed(SWAP, TransferMemory()).figures["load_deviation_after"]
        for settings in (quirk, replace(quirk, debug_mode=True))
    ]
    assert after[0] != after[1]


def test_swap_keeps_both_nodes_below_the_present_throughput() -> None:
    """Without the 15 that would leave the idle node at 100, 48 come back; with them no others would do."""
    nodes = {"idle": (0.3, 35, (15, 30, 18)), "busy": (0.9, 100, (80, 90))}
    assert moves(view_of(nodes)) == ["t/n/idle-1: idle > busy", "t/n/idle-2: idle > busy", "t/n/busy-0: busy > idle"]


def test_no_swap_without_transfer() -> None:
    """The rule does not know where the bundle goes, so nothing can come back."""
    assert moves(SWAP, replace(AT_ONCE, transfers=False)) == []


def test_swapped_bundles_are_checked_unless_the_quirk_is_on() -> None:
    """A bundle that moved recently does not come back; the original lets it."""
    rested = replace(SWAP, recently_unloaded=frozenset({"t/n/idle-0"}))
    assert moves(rested, replace(AT_ONCE, max_pairs=1))[:2] == ["t/n/idle-1: idle > busy", "t/n/idle-2: idle > busy"]
    quirk = replace(AT_ONCE, max_pairs=1, swaps_any_bundle=True)
    assert moves(rested, quirk)[:2] == ["t/n/idle-0: idle > busy", "t/n/idle-1: idle > busy"]


@dataclass(frozen=True)
class Checks:
    """Owners, policies and filters of a test."""

    not_owned: AbstractSet[str] = frozenset()
    with_policies: AbstractSet[str] = frozenset()
    allowed: Mapping[str, AbstractSet[str] | None] = field(default_factory=dict)

    def owns(self, node_id: str, bundle_id: str) -> bool:
        """All but the named ones."""
        return bundle_id not in self.not_owned and bool(node_id)

    def has_policies(self, namespace: str) -> bool:
        """The named ones."""
        return namespace in self.with_policies

    def allowed_nodes(self, bundle_id: str, nodes: AbstractSet[str]) -> AbstractSet[str] | None:
        """All but for the named ones."""
        return self.allowed.get(bundle_id, nodes)


FIRST, SECOND = "t/n/busy-0", "t/n/busy-1"


@pytest.mark.parametrize(
    ("checks", "moved"),
    [
        (Checks(), [FIRST, SECOND]),
        (Checks(not_owned={FIRST}), [SECOND]),
        (Checks(with_policies={"t/n"}), []),
        (Checks(allowed={FIRST: None}), [SECOND]),
        (Checks(allowed={FIRST: {"busy"}}), [SECOND]),
        (Checks(allowed={FIRST: {"idle"}}), [FIRST, SECOND]),
    ],
)
def test_owners_policies_and_filters_are_asked(checks: Checks, moved: list[str]) -> None:
    """A bundle leaves only its owner, without policies, and to a node that every filter leaves."""
    found = moves(replace(UNEVEN, checks=checks))
    assert [move.partition(":")[0] for move in found] == moved


def test_policies_can_be_let_pass() -> None:
    """The setting lets bundles with policies move."""
    view = replace(UNEVEN, checks=Checks(with_policies={"t/n"}))
    assert len(moves(view, replace(AT_ONCE, sheds_bundles_with_policies=True))) == 2


def test_without_transfer_another_node_has_to_be_left() -> None:
    """The placement decides where the bundle goes; the partner still has to pass the filters."""
    plain = replace(AT_ONCE, transfers=False)
    view = replace(UNEVEN, checks=Checks(allowed={FIRST: {"busy", "idle"}, SECOND: {"busy", "other"}}))
    assert moves(view, plain) == [f"{FIRST}: busy > None", "t/n/busy-2: busy > None"]


def test_excluded_namespaces_and_recent_bundles_stay() -> None:
    """Their bundles are passed over, and the next ones take their place."""
    assert moves(UNEVEN, replace(AT_ONCE, excluded_namespaces=frozenset({"t/n"}))) == []
    assert cycle_skip(UNEVEN, replace(AT_ONCE, excluded_namespaces=frozenset({"t/n"}))) is SkipReason.NO_BUNDLES
    assert moves(replace(UNEVEN, recently_unloaded=frozenset({FIRST}))) == [f"{SECOND}: busy > idle"]


@pytest.mark.parametrize(("since_ms", "rests"), [(-5, True), (179_999, True), (180_000, False)])
def test_a_node_that_shed_rests_until_its_load_shows_it(since_ms: int, *, rests: bool) -> None:
    """The sample has to be taken 180 s after the shedding; until then nobody sheds. Afterwards it is forgotten."""
    memory = TransferMemory(5).with_unloaded("busy", NOW_MS - since_ms)
    shedding = TransferShedder(AT_ONCE).shed(UNEVEN, memory)
    if rests:
        assert [skip.reason for skip in shedding.skips] == [SkipReason.COOL_DOWN]
        assert shedding.memory == memory
        assert shedding.figures == {}
    else:
        assert shedding.choices
        assert shedding.memory.unloaded_at_ms == {}


def test_loads_that_are_missing_or_too_old_end_the_cycle() -> None:
    """A load of exactly the lifetime still counts."""
    old = {name: load._replace(updated_at_ms=NOW_MS - 1_800_001) for name, load in UNEVEN.loads.items()}
    edge = {name: load._replace(updated_at_ms=NOW_MS - 1_800_000) for name, load in UNEVEN.loads.items()}
    assert cycle_skip(replace(UNEVEN, loads=old)) is SkipReason.OUTDATED_LOAD
    assert moves(replace(UNEVEN, loads=edge)) == moves(UNEVEN)
    assert cycle_skip(replace(UNEVEN, loads={})) is SkipReason.NO_NODES
    assert cycle_skip(replace(UNEVEN, registered=UNEVEN.registered | {"silent"})) is SkipReason.NO_LOAD


def test_an_outdated_node_is_paired_only_by_the_quirk() -> None:
    """Its load does not count in the mean; the original still takes it for the least loaded node."""
    view = view_of({"stale": (0.0, 0, ()), "idle": (0.1, 10, ()), "busy": (0.9, 90, (10, 20, 60))})
    view = replace(view, loads={**view.loads, "stale": smoothed(0.0, 0, age_ms=1_800_001)})
    assert {move.partition("> ")[2] for move in moves(view)} == {"idle"}
    assert {move.partition("> ")[2] for move in moves(view, replace(AT_ONCE, pairs_outdated_nodes=True))} == {"stale"}


def test_a_swap_may_end_with_equal_throughputs() -> None:
    """The idle node may have as much as the busy one afterwards, and the busy one less than three quarters."""
    even = view_of({"idle": (0.2, 40, (20,)), "busy": (1.0, 100, (50, 5, 45))})
    assert moves(even, replace(AT_ONCE, max_pairs=1))[:2] == ["t/n/idle-0: idle > busy", "t/n/busy-0: busy > idle"]
    edge = view_of({"idle": (0.2, 40, (25,)), "busy": (1.0, 100, (50, 5, 45))})
    assert moves(edge, replace(AT_ONCE, max_pairs=1)) == []


def test_offloading_is_accounted_for_as_in_the_original() -> None:
    """No load falls below 0; the deviation is that of the new loads around the old mean."""
    spread = spread_of([0.2, 1.0]).after_offload(1.0, 0.2, 1.5)
    assert spread.deviation == pytest.approx(math.sqrt(abs((0.0**2 + 1.7**2) / 2 - 0.6**2)))
    assert spread.mean == 0.6
    target = offload_target(smoothed(0.8, 59), smoothed(0.39, 0))
    assert target == 59 * ((0.8 - 0.39) / 2) / 0.8 != 59 * ((0.8 - 0.39) / 2 / 0.8)
    target = offload_target(smoothed(0.6, 66), smoothed(0.09, 0))
    assert target == 66 * ((0.6 - 0.09) / 2) / 0.6 != 66 / 0.6 * ((0.6 - 0.09) / 2)


def test_sums_have_the_order_of_the_view() -> None:
    """Floating-point sums depend on it: this order gives the mean that the original's own test expects."""
    assert spread_of([0.02, 0.04, 0.06, 0.8, 0.9]).mean != spread_of([0.9, 0.8, 0.06, 0.04, 0.02]).mean
    assert spread_of([0.5, 0.5]).deviation == 0.0


def test_loads_that_are_no_numbers() -> None:
    """As in the original nothing exceeds a target that is no number; under our policy the load counts as missing."""
    view = replace(UNEVEN, loads={**UNEVEN.loads, "busy": smoothed(math.nan, 90)})
    assert len(moves(view)) == 3
    seen, (missing,) = plausible_transfers(view)
    assert cycle_skip(seen) is SkipReason.NO_LOAD
    assert missing[:3] == ("busy", "", "smoothed_usage")
    bundles = {**UNEVEN.top_bundles, "busy": (ReportedBundle("t/n/x", -1.0), *UNEVEN.top_bundles["busy"])}
    wrong = Implausible("busy", "t/n/x", "bytes_per_s", -1.0, 0.0)
    assert plausible_transfers(replace(UNEVEN, top_bundles=bundles)) == (UNEVEN, (wrong,))
    assert plausible_transfers(UNEVEN) == (UNEVEN, ())


def test_a_node_with_usage_and_without_throughput() -> None:
    """Its share of the throughput is 0, so every bundle exceeds it; divisions by zero do not fail."""
    assert cycle_skip(view_of({"idle": (0.1, 0, ()), "busy": (0.9, 0, (1, 2, 3))})) is SkipReason.NO_BUNDLES
    assert cycle_skip(view_of({"a": (0.0, 0, (0, 0)), "b": (0.0, 0, (0, 0))})) is SkipReason.HIT_COUNT


@pytest.mark.parametrize("wrong", [{"target_deviation": math.nan}, {"max_pairs": -1}, {"hit_count": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    """They would act always or never."""
    with pytest.raises(ConfigurationError, match="0 or greater"):
        TransferSettings(**wrong)  # type: ignore[arg-type]  # numbers of both kinds

"""The shedder that pairs nodes by score: hit counts, plan and placement."""

import math
from dataclasses import replace
from typing import NamedTuple

import pytest

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, MessageLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.placement.avg_shedder import PlannedNodePlacement
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.picks import picked
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder, AvgShedderSettings
from controlplane.core.bundles.shedding.avg_shedder_plan import AvgShedderMemory, PlannedNode, averages_key
from controlplane.core.bundles.shedding.contract import ShedChoice, ShedReason, SkipReason, UnloadOutcome
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import bundle_history, loaded_node, view_of

BUNDLES = {"t/n/a": bundle_history(0, 4_000), "t/n/b": bundle_history(0, 1_500), "t/n/c": bundle_history(0, 0)}


def two_nodes(busy_score: float, idle_score: float = 10) -> LoadView:
    """Two nodes with 20,000 and 1,000 messages per second."""
    busy = loaded_node("busy", busy_score, MessageLoad(0.0, 0.0, 20_000.0, 0.0), *BUNDLES)
    idle = loaded_node("idle", idle_score, MessageLoad(0.0, 0.0, 1_000.0, 0.0))
    return view_of(busy, idle, bundles=BUNDLES)


def cycles_until_choice(shedder: AvgShedder, view: LoadView) -> int:
    """In which cycle the first bundle is shed."""
    memory = shedder.first_memory
    for cycle in range(1, 20):
        shedding = shedder.shed(view, memory)
        if shedding.choices:
            return cycle
        memory = shedding.memory
    return 0


@pytest.mark.parametrize(("busy_score", "cycle"), [(24, 0), (25, 8), (49, 8), (50, 2), (90, 2)])
def test_hits_needed_by_difference(busy_score: float, cycle: int) -> None:
    """A difference below 15 counts for nothing, below 40 needs eight cycles, from 40 on two."""
    assert cycles_until_choice(AvgShedder(), two_nodes(busy_score)) == cycle


def test_a_small_difference_forgets_the_hits() -> None:
    """Hits have to be consecutive."""
    shedder = AvgShedder()
    once = shedder.shed(two_nodes(90), shedder.first_memory).memory
    assert once.high_hits == {"idle": 1, "busy": 1}
    assert shedder.shed(two_nodes(12), once).memory == AvgShedderMemory()


def test_a_difference_between_the_thresholds_forgets_high_hits_only() -> None:
    """The low count goes on; a count that is looked at becomes 0."""
    shedder = AvgShedder()
    once = shedder.shed(two_nodes(90), shedder.first_memory).memory
    after = shedder.shed(two_nodes(30), once).memory
    assert (after.high_hits, after.low_hits) == ({"idle": 0, "busy": 0}, {"idle": 2, "busy": 2})


def test_choices_fit_into_the_share_and_name_their_target() -> None:
    """A fifth of the difference is 3,800 messages per second: the greatest bundle is too big, an idle one stays."""
    shedder = AvgShedder(AvgShedderSettings(high_hits=1))
    shedding = shedder.shed(two_nodes(90), shedder.first_memory)
    (choice,) = shedding.choices
    assert (choice.bundle_id, choice.destination, choice.reason) == ("t/n/b", "idle", ShedReason.UNEVEN_MESSAGE_RATE)
    assert choice.target == pytest.approx(3_800)
    assert [each.name for each in choice.evidence] == ["score_difference", "target_messages_per_s"]
    assert shedding.memory == AvgShedderMemory({}, {}, {"t/n/b": PlannedNode("idle", "t/n/b")})


def test_minimum_is_exceeded_strictly() -> None:
    """A target of exactly the minimum is skipped."""
    shedder = AvgShedder(AvgShedderSettings(high_hits=1, min_messages_per_s=19_000 * 0.2))
    shedding = shedder.shed(two_nodes(90), shedder.first_memory)
    assert shedding.choices == ()
    assert [skip.reason for skip in shedding.skips] == [SkipReason.SMALL_TARGET]


def test_a_sole_bundle_that_fits_goes() -> None:
    """Unlike in the other rules: the pairing makes sure that it does not come back at once."""
    busy = loaded_node("busy", 90, MessageLoad(0.0, 0.0, 20_000.0, 0.0), "t/n/b")
    view = view_of(busy, loaded_node("idle", 10, MessageLoad(0.0, 0.0, 0.0, 0.0)), bundles=BUNDLES)
    shedder = AvgShedder(AvgShedderSettings(high_hits=1))
    assert shedder.shed(view, shedder.first_memory).bundles_by_node() == {"busy": ["t/n/b"]}


def shared_plan(node_id: str, bundle_id: str, averages: BundleHistory) -> dict[str, PlannedNode]:
    """A plan by averages."""
    return {averages_key(averages): PlannedNode(node_id, bundle_id, averages)}


class Placed(NamedTuple):
    """A bundle's node, the nodes that it was drawn from, and the memory after it."""

    node_id: str | None
    best: tuple[str, ...]
    memory: AvgShedderMemory


def test_every_node_has_one_partner() -> None:
    """Of five nodes two pairs differ; the middle one is paired with itself, which forgets its hits."""
    scores = {"a": 90, "b": 10, "c": 50, "d": 71, "e": 30}
    nodes = [loaded_node(name, score, MessageLoad(0.0, 0.0, 0.0, 0.0)) for name, score in scores.items()]
    shedder = AvgShedder()
    memory = shedder.shed(view_of(*nodes, bundles={}), AvgShedderMemory({"c": 1}, {"c": 7})).memory
    assert memory.high_hits == {"b": 1, "a": 1, "e": 1, "d": 1}
    assert memory.low_hits == {"b": 1, "a": 1, "e": 1, "d": 1}


def place(
    shedder: AvgShedder, bundle_id: str, candidates: list[str], view: LoadView, memory: AvgShedderMemory
) -> Placed:
    """The bundle's node by the strategy that follows the shedder's plan, with the first of the best ones drawn."""
    strategy, bundle = PlannedNodePlacement(shedder), BundleToPlace(bundle_id, BundleHistory(UNSEEN_BUNDLE))
    pick, memory = picked(strategy, bundle, candidates, view, 0.0, memory)
    return Placed(pick.node_id, pick.best, memory)


def test_placement_follows_the_plan_while_the_node_is_a_candidate() -> None:
    """Otherwise every candidate is as good, by name."""
    shedder = AvgShedder()
    view = two_nodes(90)
    memory = AvgShedderMemory(plan={"t/n/b": PlannedNode("idle", "t/n/b")})
    assert place(shedder, "t/n/b", ["busy", "idle"], view, memory) == Placed("idle", ("idle",), memory)
    assert place(shedder, "t/n/b", ["x", "busy"], view, memory) == Placed("busy", ("busy", "x"), memory)
    assert place(shedder, "t/n/b", [], view, memory) == Placed(None, (), memory)


def test_a_plan_by_name_avoids_an_overloaded_node() -> None:
    """The bundle goes to a node that is not overloaded, if there is one; 4.2.4 follows its plan."""
    view = view_of(
        *(loaded_node(name, cpu, MessageLoad(0.0, 0.0, 0.0, 0.0)) for name, cpu in (("a", 86), ("b", 85), ("c", 99))),
        bundles=BUNDLES,
    )
    shedder = AvgShedder()
    memory = AvgShedderMemory(plan={"t/n/b": PlannedNode("a", "t/n/b")})
    assert shedder.best("t/n/b", ["c", "d", "b", "a"], view, memory) == ("b", "d")
    assert place(shedder, "t/n/b", ["c", "b", "a"], view, memory).node_id == "b"
    assert shedder.best("t/n/b", ["c", "a"], view, memory) == ("a", "c")
    quirk = AvgShedder(AvgShedderSettings(plans_by_averages=True))
    shared = AvgShedderMemory(plan=shared_plan("a", "t/n/b", BUNDLES["t/n/b"]))
    assert quirk.best("t/n/b", ["c", "b", "a"], view, shared) == ("a",)


def test_a_plan_by_name_ends_with_its_attempt() -> None:
    """Afterwards the bundle is placed like any other."""
    memory = AvgShedderMemory({"a": 1}, {"a": 2}, {"t/n/b": PlannedNode("idle", "t/n/b")})
    choice = ShedChoice("busy", "t/n/b", ShedReason.UNEVEN_MESSAGE_RATE, 1.0, 1.0, (), "idle")
    by_averages = AvgShedder(AvgShedderSettings(plans_by_averages=True))
    for outcome in UnloadOutcome:
        assert AvgShedder().after_unload(memory, choice, outcome, 0) == AvgShedderMemory({"a": 1}, {"a": 2})
        assert AvgShedder().after_unload(memory, replace(choice, bundle_id="t/n/c"), outcome, 0) == memory
        assert by_averages.after_unload(memory, choice, outcome, 0) == memory


def test_equal_averages_have_equal_keys() -> None:
    """Whatever their sign of zero and their kind of number; any other figure makes another key."""
    key = averages_key(bundle_history(0, 1_500))
    assert key == averages_key(bundle_history(-0.0, 1_500.0))
    assert len({key, averages_key(bundle_history(1, 1_500)), averages_key(replace(EQUAL["t/n/b"], topic_count=7))}) == 3


EQUAL = {"t/n/b": bundle_history(0, 1_500), "t/n/twin": bundle_history(0, 1_500)}


def test_4_2_4_plans_bundles_with_equal_averages_together() -> None:
    """The twin goes where the bundle goes, and the last pair decides."""
    shedder = AvgShedder(AvgShedderSettings(high_hits=1, plans_by_averages=True))
    nodes = [
        loaded_node("a", 95, MessageLoad(0.0, 0.0, 30_000.0, 0.0), "t/n/b"),
        loaded_node("b", 80, MessageLoad(0.0, 0.0, 20_000.0, 0.0), "t/n/twin"),
        loaded_node("c", 20, MessageLoad(0.0, 0.0, 1_000.0, 0.0)),
        loaded_node("d", 5, MessageLoad(0.0, 0.0, 1_000.0, 0.0)),
    ]
    view = view_of(*nodes, bundles=EQUAL)
    shedding = shedder.shed(view, shedder.first_memory)
    assert [(choice.bundle_id, choice.destination) for choice in shedding.choices] == [
        ("t/n/b", "d"),
        ("t/n/twin", "c"),
    ]
    assert len(shedding.memory.plan) == 1
    for name in EQUAL:
        assert place(shedder, name, ["a", "b", "c", "d"], view, shedding.memory).node_id == "c"
    by_name = AvgShedder(AvgShedderSettings(high_hits=1))
    memory = by_name.shed(view, by_name.first_memory).memory
    assert place(by_name, "t/n/b", ["a", "b", "c", "d"], view, memory).node_id == "d"


def test_4_2_4_loses_a_plan_when_the_bundle_has_a_new_sample() -> None:
    """The averages that are the key have changed, so nothing finds the entry, and the next cycle drops it."""
    shedder = AvgShedder(AvgShedderSettings(plans_by_averages=True))
    view = view_of(*two_nodes(12).nodes.values(), bundles=EQUAL)
    memory = place(shedder, "t/n/b", ["idle"], view, AvgShedderMemory()).memory
    assert place(shedder, "t/n/twin", ["busy", "idle"], view, memory).node_id == "idle"
    sampled = replace(view, bundles={**EQUAL, "t/n/b": bundle_history(0, 1_501)})
    found = place(shedder, "t/n/twin", ["busy"], sampled, memory)
    assert found.best == ("busy",)
    assert found.memory.plan == shared_plan("busy", "t/n/twin", EQUAL["t/n/twin"])
    assert shedder.shed(sampled, memory).memory.plan == {}


def test_4_2_4_keeps_the_first_writer_of_a_shared_plan() -> None:
    """The key is the averages of the bundle that came first: its next sample hides the entry for the twin too."""
    shedder = AvgShedder(AvgShedderSettings(plans_by_averages=True))
    view = view_of(*two_nodes(12).nodes.values(), bundles=EQUAL)
    memory = shedder.after_pick("t/n/b", "idle", view, AvgShedderMemory())
    memory = shedder.after_pick("t/n/twin", "busy", view, memory)
    assert memory.plan == shared_plan("busy", "t/n/b", EQUAL["t/n/b"])
    of_twin = replace(view, bundles={**EQUAL, "t/n/twin": bundle_history(0, 1_501)})
    assert shedder.planned("t/n/b", of_twin, memory) == PlannedNode("busy", "t/n/b", EQUAL["t/n/b"])
    of_first = replace(view, bundles={**EQUAL, "t/n/b": bundle_history(0, 1_501)})
    assert shedder.planned("t/n/twin", of_first, memory) is None


def test_unseen_bundles_share_a_plan_until_the_first_of_them_is_sampled() -> None:
    """They all have the averages of an unseen bundle, so 4.2.4 sends all of them to one node."""
    shedder = AvgShedder(AvgShedderSettings(plans_by_averages=True))
    view = two_nodes(12)
    first = place(shedder, "t/new/a", ["busy", "idle"], view, AvgShedderMemory())
    second = place(shedder, "t/new/b", ["busy", "idle"], view, first.memory)
    assert first.best == ("busy", "idle")
    assert (second.node_id, second.best) == (first.node_id, (first.node_id,))
    sampled = replace(view, bundles={**BUNDLES, "t/new/a": bundle_history(1)})
    assert place(shedder, "t/new/b", ["busy", "idle"], sampled, first.memory).best == ("busy", "idle")
    by_name = AvgShedder()
    assert place(by_name, "t/new/a", ["busy", "idle"], view, AvgShedderMemory()).memory == AvgShedderMemory()


@pytest.mark.parametrize("wrong", [{"low_difference": -1}, {"max_share": math.nan}, {"high_hits": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    """With them nodes would exchange bundles all the time."""
    with pytest.raises(ConfigurationError, match="0 or greater"):
        AvgShedderSettings(**wrong)  # type: ignore[arg-type]  # numbers of both kinds

"""The shedder that pairs nodes by score: hit counts, plan and placement."""

import math
import zlib
from dataclasses import replace

import pytest

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.shedding.contract import ShedReason, SkipReason
from controlplane.core.bundles.shedding.score_pairs import AvgShedder, ScoreSettings
from controlplane.core.bundles.shedding.score_plan import PlannedNode, ScoreMemory, pick
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
    assert shedder.shed(two_nodes(12), once).memory == ScoreMemory()


def test_a_difference_between_the_thresholds_forgets_high_hits_only() -> None:
    """The low count goes on; a count that is looked at becomes 0."""
    shedder = AvgShedder()
    once = shedder.shed(two_nodes(90), shedder.first_memory).memory
    after = shedder.shed(two_nodes(30), once).memory
    assert (after.high_hits, after.low_hits) == ({"idle": 0, "busy": 0}, {"idle": 2, "busy": 2})


def test_choices_fit_into_the_share_and_name_their_target() -> None:
    """A fifth of the difference is 3,800 messages per second: the greatest bundle is too big, an idle one stays."""
    shedder = AvgShedder(ScoreSettings(high_hits=1))
    shedding = shedder.shed(two_nodes(90), shedder.first_memory)
    (choice,) = shedding.choices
    assert (choice.bundle_id, choice.destination, choice.reason) == ("t/n/b", "idle", ShedReason.UNEVEN_MESSAGE_RATE)
    assert choice.target == pytest.approx(3_800)
    assert [each.name for each in choice.evidence] == ["score_difference", "target_messages_per_s"]
    assert shedding.memory == ScoreMemory({}, {}, {"t/n/b": PlannedNode("idle", "t/n/b")})


def test_minimum_is_exceeded_strictly() -> None:
    """A target of exactly the minimum is skipped."""
    shedder = AvgShedder(ScoreSettings(high_hits=1, min_messages_per_s=19_000 * 0.2))
    shedding = shedder.shed(two_nodes(90), shedder.first_memory)
    assert shedding.choices == ()
    assert [skip.reason for skip in shedding.skips] == [SkipReason.SMALL_TARGET]


def test_a_sole_bundle_that_fits_goes() -> None:
    """Unlike in the other rules: the pairing makes sure that it does not come back at once."""
    busy = loaded_node("busy", 90, MessageLoad(0.0, 0.0, 20_000.0, 0.0), "t/n/b")
    view = view_of(busy, loaded_node("idle", 10, MessageLoad(0.0, 0.0, 0.0, 0.0)), bundles=BUNDLES)
    shedder = AvgShedder(ScoreSettings(high_hits=1))
    assert shedder.shed(view, shedder.first_memory).bundles_by_node() == {"busy": ["t/n/b"]}


def test_every_node_has_one_partner() -> None:
    """Of five nodes two pairs differ; the middle one is paired with itself, which forgets its hits."""
    scores = {"a": 90, "b": 10, "c": 50, "d": 71, "e": 30}
    nodes = [loaded_node(name, score, MessageLoad(0.0, 0.0, 0.0, 0.0)) for name, score in scores.items()]
    shedder = AvgShedder()
    memory = shedder.shed(view_of(*nodes, bundles={}), ScoreMemory({"c": 1}, {"c": 7})).memory
    assert memory.high_hits == {"b": 1, "a": 1, "e": 1, "d": 1}
    assert memory.low_hits == {"b": 1, "a": 1, "e": 1, "d": 1}


def test_pick_is_the_checksum_of_the_drawn_number() -> None:
    """The candidate by name at CRC-32 modulo their number; the order of arrival does not count."""
    for drawn in (0, 1, -7, 2**31 - 1, -(2**31)):
        expected = ["a", "b", "c"][zlib.crc32(str(drawn).encode()) % 3]
        assert pick(["c", "a", "b"], drawn) == pick(["b", "c", "a"], drawn) == expected
    assert {pick(["a", "b", "c"], drawn) for drawn in range(50)} == {"a", "b", "c"}
    assert pick([], 5) is None


def test_placement_follows_the_plan_while_the_node_is_a_candidate() -> None:
    """Otherwise it picks, and says from which nodes."""
    shedder = AvgShedder()
    view = two_nodes(90)
    memory = ScoreMemory(plan={"t/n/b": PlannedNode("idle", "t/n/b")})
    planned = shedder.place("t/n/b", ["busy", "idle"], view, memory, drawn=1)
    assert (planned.node_id, planned.picked_from, planned.memory) == ("idle", (), memory)
    picked = shedder.place("t/n/b", ["x", "busy"], view, memory, drawn=1)
    assert picked.node_id == pick(["x", "busy"], 1)
    assert picked.picked_from == ("busy", "x")
    assert picked.memory == memory
    assert shedder.place("t/n/b", [], view, memory, drawn=1).node_id is None


def test_a_plan_by_name_avoids_an_overloaded_node() -> None:
    """The bundle goes to a node that is not overloaded, if there is one; 4.2.4 follows its plan."""
    view = view_of(
        *(loaded_node(name, cpu, MessageLoad(0.0, 0.0, 0.0, 0.0)) for name, cpu in (("a", 86), ("b", 85), ("c", 99))),
        bundles=BUNDLES,
    )
    shedder = AvgShedder()
    memory = ScoreMemory(plan={"t/n/b": PlannedNode("a", "t/n/b")})
    assert shedder.best("t/n/b", ["c", "d", "b", "a"], view, memory) == ("b", "d")
    assert shedder.place("t/n/b", ["c", "b", "a"], view, memory, drawn=3).node_id == "b"
    assert shedder.best("t/n/b", ["c", "a"], view, memory) == ("a", "c")
    quirk = AvgShedder(ScoreSettings(plans_by_averages=True))
    shared = ScoreMemory(plan={BUNDLES["t/n/b"]: PlannedNode("a", "t/n/b")})
    assert quirk.best("t/n/b", ["c", "b", "a"], view, shared) == ("a",)


def test_a_plan_by_name_ends_with_its_attempt() -> None:
    """Afterwards the bundle is placed like any other."""
    memory = ScoreMemory({"a": 1}, {"a": 2}, {"t/n/b": PlannedNode("idle", "t/n/b")})
    assert memory.without_plans_for(["t/n/b"]) == ScoreMemory({"a": 1}, {"a": 2})
    assert memory.without_plans_for(["t/n/c"]) == memory


EQUAL = {"t/n/b": bundle_history(0, 1_500), "t/n/twin": bundle_history(0, 1_500)}


def test_4_2_4_plans_bundles_with_equal_averages_together() -> None:
    """The twin goes where the bundle goes, and the last pair decides."""
    shedder = AvgShedder(ScoreSettings(high_hits=1, plans_by_averages=True))
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
        assert shedder.place(name, ["a", "b", "c", "d"], view, shedding.memory, drawn=0).node_id == "c"
    by_name = AvgShedder(ScoreSettings(high_hits=1))
    memory = by_name.shed(view, by_name.first_memory).memory
    assert by_name.place("t/n/b", ["a", "b", "c", "d"], view, memory, drawn=0).node_id == "d"


def test_4_2_4_loses_a_plan_when_the_bundle_has_a_new_sample() -> None:
    """The averages that are the key have changed, so nothing finds the entry, and the next cycle drops it."""
    shedder = AvgShedder(ScoreSettings(plans_by_averages=True))
    view = view_of(*two_nodes(12).nodes.values(), bundles=EQUAL)
    memory = shedder.place("t/n/b", ["idle"], view, ScoreMemory(), drawn=0).memory
    assert shedder.place("t/n/twin", ["busy", "idle"], view, memory, drawn=0).node_id == "idle"
    sampled = replace(view, bundles={**EQUAL, "t/n/b": bundle_history(0, 1_501)})
    found = shedder.place("t/n/twin", ["busy"], sampled, memory, drawn=0)
    assert found.picked_from == ("busy",)
    assert found.memory.plan == {EQUAL["t/n/twin"]: PlannedNode("busy", "t/n/twin")}
    assert shedder.shed(sampled, memory).memory.plan == {}


def test_4_2_4_keeps_the_first_writer_of_a_shared_plan() -> None:
    """The key is the averages of the bundle that came first: its next sample hides the entry for the twin too."""
    shedder = AvgShedder(ScoreSettings(plans_by_averages=True))
    view = view_of(*two_nodes(12).nodes.values(), bundles=EQUAL)
    memory = shedder.after_pick("t/n/b", "idle", view, ScoreMemory())
    memory = shedder.after_pick("t/n/twin", "busy", view, memory)
    assert memory.plan == {EQUAL["t/n/b"]: PlannedNode("busy", "t/n/b")}
    of_twin = replace(view, bundles={**EQUAL, "t/n/twin": bundle_history(0, 1_501)})
    assert shedder.planned("t/n/b", of_twin, memory) == PlannedNode("busy", "t/n/b")
    of_first = replace(view, bundles={**EQUAL, "t/n/b": bundle_history(0, 1_501)})
    assert shedder.planned("t/n/twin", of_first, memory) is None


def test_unseen_bundles_share_a_plan_until_the_first_of_them_is_sampled() -> None:
    """They all have the averages of an unseen bundle, so 4.2.4 sends all of them to one node."""
    shedder = AvgShedder(ScoreSettings(plans_by_averages=True))
    view = two_nodes(12)
    first = shedder.place("t/new/a", ["busy", "idle"], view, ScoreMemory(), drawn=0)
    second = shedder.place("t/new/b", ["busy", "idle"], view, first.memory, drawn=1)
    assert first.picked_from == ("busy", "idle")
    assert (second.node_id, second.picked_from) == (first.node_id, ())
    sampled = replace(view, bundles={**BUNDLES, "t/new/a": bundle_history(1)})
    assert shedder.place("t/new/b", ["busy", "idle"], sampled, first.memory, drawn=1).picked_from
    by_name = AvgShedder()
    assert by_name.place("t/new/a", ["busy", "idle"], view, ScoreMemory(), drawn=0).memory == ScoreMemory()


@pytest.mark.parametrize("wrong", [{"low_difference": -1}, {"max_share": math.nan}, {"high_hits": -1}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    """With them nodes would exchange bundles all the time."""
    with pytest.raises(ConfigurationError, match="0 or greater"):
        ScoreSettings(**wrong)  # type: ignore[arg-type]  # numbers of both kinds

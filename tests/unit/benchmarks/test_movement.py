"""What the movement benchmark counts, and the histories that it plays."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from benchmarks import movement
from benchmarks.fleet_histories import ZONES, History, joins_and_leaves, weights, zone_losses
from benchmarks.placers.least import LeastMovement
from benchmarks.placers.round_robin import RoundRobin
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementRules

MakeHistory = Callable[[int, int, int], History]


def test_moves_and_leader_changes_are_counted_slot_by_slot() -> None:
    """A follower that becomes leader is no move; a first leader is no change."""
    before = (("a", "b"), ("b", "c"), ())
    after = (("b", "c"), ("b", "c"), ("a", "b"))
    assert movement.moves(before, after) == 3
    assert movement.leader_changes(before, after) == 1


def test_a_share_is_by_weight() -> None:
    """A node of weight 2 with two thirds has just its share; the other with one third as well."""
    fleet = (PlacementNode("a", 2, 0), PlacementNode("b", 1, 0))
    assert movement.greatest_share({"a": 20.0, "b": 10.0}, fleet) == 1
    assert movement.greatest_share({"a": 15.0, "b": 15.0}, fleet) == 1.5


def test_slots_that_crowd_a_zone_are_counted() -> None:
    """With two living zones three replicas cannot help meeting, but not all three in one."""
    fleet = tuple(PlacementNode(name, 1, 0, name[0]) for name in ("x1", "x2", "x3", "y1"))
    table = (("x1", "x2", "y1"), ("x1", "x2", "x3"), ("x1", "y1"), ("x1", "x2"))
    assert movement.crowded_slots(table, fleet) == 2


@pytest.mark.parametrize("make", [joins_and_leaves, weights, zone_losses])
def test_histories_follow_from_their_seed(make: MakeHistory) -> None:
    """Every placer gets the same one, today and tomorrow; each event changes something."""
    history = make(7, 12, 40)
    assert history == make(7, 12, 40)
    assert history != make(8, 12, 40)
    assert len(history.fleets) == 40
    assert all(before != after for before, after in pairwise((history.start, *history.fleets)))
    assert all(3 <= len(fleet) <= 19 for fleet in history.fleets)
    assert all(fleet == tuple(sorted(fleet, key=lambda node: node.node_id)) for fleet in history.fleets)


def test_histories_hold_what_their_names_say() -> None:
    """Weights change in place; zones go whole and come back."""
    changed = [
        {node.node_id for node in before} == {node.node_id for node in after}
        for before, after in pairwise(weights(7, 12, 40).fleets)
    ]
    assert any(changed)
    zones = [{node.zone for node in fleet} for fleet in zone_losses(7, 12, 40).fleets]
    assert min(map(len, zones)) == len(ZONES) - 1
    assert max(map(len, zones)) == len(ZONES)


def test_the_default_policy_moves_the_least_and_round_robin_does_not() -> None:
    """The ratios that the page on movement explains, on a small fleet."""
    history = joins_and_leaves(3, 8, 6)
    own = movement.measure(LeastMovement(64, PlacementRules(2)), history, [1.0] * 64, 2)
    other = movement.measure(RoundRobin(64, 2), history, [1.0] * 64, 2)
    assert own.moved == own.least > 0
    assert max(own.replicas) < 1.1
    assert other.moved > 3 * own.moved
    assert len(own.elapsed_ms) == 6


def test_a_small_run_prints_a_line_for_each_placer(capsys: pytest.CaptureFixture[str]) -> None:
    """Its whole output is its result: seed, histories, baselines, and who ignores what."""
    movement.main(["--slots", "32", "--nodes", "6", "--events", "2", "--replicas", "1", "2", "--seed", "5"])
    printed = capsys.readouterr().out
    assert printed.startswith("seed 5: 32 slots, 6 nodes, 2 events a history\n")
    lines = [line for line in printed.splitlines() if line.startswith("ring, 500 virtual nodes")]
    assert len(lines) == 5
    assert [line.partition("  ignores ")[2] for line in lines] == ["", "weights", "", "weights", "zones"]
    assert all(f"\n{placer.name} " in printed for placer in movement.placers(1, 1))

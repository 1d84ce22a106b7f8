"""Planner, independent optimum and certificate agree, on clusters of every kind."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules
from controlplane.core.slots.minimal.planner import plan
from controlplane.core.slots.proof.verify import verify
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch
from tests.helpers.clusters import LARGE, SMALL, TINY, Size, random_cluster
from tests.helpers.placement_oracle import Oracle
from tests.helpers.placement_problems import Problem, problems
from tests.helpers.sizes import sized

FEATURES = ("weights", "domains", "pins", "drains", "exclusions", "bands", "arbitrary previous table")
SMALL_COUNT, LARGE_COUNT = sized((2_000, 400), (9_000, 1_100))


def judge(problem: PlacementProblem) -> None:
    """Plan, and compare with everything that is known otherwise."""
    planned = plan(problem)
    after = planned.applied_to(problem.previous)
    certificate = planned.certificate
    oracle = Oracle(problem)
    _is_legal(oracle, after)
    assert {name: str(share) for name, share in oracle.shares.items()} == certificate.node_shares
    held = Counter(name for slot in after for name in slot.replicas)
    led = Counter(slot.leader for slot in after if slot.leader is not None)
    assert all(least <= held[name] <= most for name, (least, most) in oracle.bands.items())
    assert all(least <= led[name] <= most for name, (least, most) in oracle.leader_bands(after).items())
    optimum = oracle.least_moved()
    moved = sum(len(set(new.replicas) - set(old.replicas)) for old, new in zip(problem.previous, after, strict=True))
    assert (certificate.zone_violations, certificate.moved, moved) == (
        optimum.zone_violations,
        optimum.moved,
        optimum.moved,
    )
    pairs = list(zip(problem.previous, after, strict=True))
    assert sum(oracle.leader_cost(old, new, new.leader) for old, new in pairs) == oracle.least_leader_cost(after)
    assert verify(problem, after, certificate) == []


def _is_legal(oracle: Oracle, after: tuple[Slot, ...]) -> None:
    absent = 0
    for slot in after:
        holders = set(slot.replicas)
        assert len(holders) == len(slot.replicas)
        assert holders <= oracle.eligible[slot.slot_id]
        assert oracle.pins.get(slot.slot_id, frozenset()) <= holders
        assert (slot.leader is None) == (not holders)
        assert oracle.pinned_leaders.get(slot.slot_id, slot.leader) == slot.leader
        absent += oracle.units[slot.slot_id] - len(holders)
        assert 0 <= oracle.units[slot.slot_id] - len(holders) <= 1
        if oracle.problem.rules.zone_rule is ZoneRule.HARD:
            zones = Counter(oracle.nodes[name].zone for name in holders)
            assert all(count <= oracle.zone_limit(zone) for zone, count in zones.items())
    assert absent == oracle.absent


STUCK = PlacementProblem(
    (
        Slot(0, "b", ("c",), Epoch(1)),
        Slot(1, "b", ("c",), Epoch(1)),
        Slot(2, "a", (), Epoch(1)),
    ),
    (PlacementNode("a", 1, 0), PlacementNode("b", 1, 0), PlacementNode("c", 1, 0)),
    PlacementRules(2),
    Epoch(2),
)
"""One replica is missing, of slot 2, and only ``a`` lacks one, but ``a`` holds slot 2 already: it takes two moves."""


def test_a_missing_replica_may_take_two_moves() -> None:
    """The only node that lacks a replica holds the slot already."""
    assert plan(STUCK).certificate.moved == 2
    judge(STUCK)


@given(st.integers(0, 1 << 32))
def test_planner_and_optimum_agree(seed: int) -> None:
    """Whatever the cluster."""
    judge(random_cluster(seed, SMALL)[0])


@given(problems(max_slots=5))
def test_planner_and_optimum_agree_without_further_rules(problem: Problem) -> None:
    """Weights, capacities and arbitrary tables in the form that shrinks to something readable."""
    judge(problem.asked())


@given(st.integers(0, 1 << 32))
def test_optimum_is_what_trying_everything_finds(seed: int) -> None:
    """The other solver answers the question that is meant: no legal table in the bands is better."""
    problem, _ = random_cluster(seed, TINY)
    oracle = Oracle(problem)
    best = min(
        (_violations(oracle, choice), _moved(problem, choice))
        for choice in product(*(_choices(oracle, slot.slot_id) for slot in problem.previous))
        if _in_bands(oracle, choice)
    )
    optimum = oracle.least_moved()
    assert (optimum.zone_violations, optimum.moved) == best


def _choices(oracle: Oracle, slot_id: int) -> list[frozenset[str]]:
    """Every legal set of holders of a slot."""
    units = oracle.units[slot_id]
    short = oracle.absent and oracle.possible[slot_id] >= oracle.level
    sets = [
        frozenset(chosen)
        for size in range(units - bool(short), units + 1)
        for chosen in combinations(sorted(oracle.eligible[slot_id]), size)
    ]
    return [
        chosen
        for chosen in sets
        if oracle.pins.get(slot_id, frozenset()) <= chosen and not (oracle.hard and _crowd(oracle, chosen))
    ]


def _crowd(oracle: Oracle, holders: frozenset[str]) -> int:
    zones = Counter(oracle.nodes[name].zone for name in holders)
    return sum(max(count - oracle.zone_limit(zone), 0) for zone, count in zones.items())


def _violations(oracle: Oracle, choice: Sequence[frozenset[str]]) -> int:
    return sum(_crowd(oracle, holders) for holders in choice) if oracle.soft else 0


def _moved(problem: PlacementProblem, choice: Sequence[frozenset[str]]) -> int:
    return sum(len(holders - set(slot.replicas)) for slot, holders in zip(problem.previous, choice, strict=True))


def _in_bands(oracle: Oracle, choice: Sequence[frozenset[str]]) -> bool:
    held = Counter(name for holders in choice for name in holders)
    return all(least <= held[name] <= most for name, (least, most) in oracle.bands.items()) and (
        sum(held.values()) == sum(oracle.units.values()) - oracle.absent
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "seeds"),
    [
        *(pytest.param(SMALL, range(at, at + 1_000), id=f"small from {at}") for at in range(0, SMALL_COUNT, 1_000)),
        *(pytest.param(LARGE, range(at, at + 100), id=f"large from {at}") for at in range(0, LARGE_COUNT, 100)),
    ],
)
def test_planner_optimum_and_certificate_agree(size: Size, seeds: range) -> None:
    """Thousands of clusters in all; each kind of difficulty is in at least a tenth of them."""
    features: Counter[str] = Counter()
    for seed in seeds:
        problem, own = random_cluster(seed, size)
        features += own
        try:
            judge(problem)
        except Exception as error:
            error.add_note(f"seed {seed}: {problem}")
            raise
    assert all(features[feature] >= len(seeds) / 10 for feature in FEATURES), features

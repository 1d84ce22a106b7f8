"""The third stage spreads load and keeps what the first two have reached."""

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.slots.minimal.contract import LoadGoal, PlacementNode, PlacementProblem, PlacementRules, Plan
from controlplane.core.slots.minimal.planner import plan
from controlplane.core.slots.proof.verify import verify
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch, NodeId
from tests.helpers.clusters import SMALL, Size, random_cluster
from tests.helpers.placement_oracle import Oracle

MIDDLE = Size((20, 60), (3, 7))


def skewed(choose: random.Random, slots: tuple[Slot, ...]) -> dict[int, int]:
    """A few hot slots, many cold ones, some without a known load."""
    return {slot.slot_id: int(choose.paretovariate(1.5) * 100) for slot in slots if choose.random() < 0.9}


@st.composite
def loaded_clusters(draw: st.DrawFn) -> PlacementProblem:
    """Any cluster with loads."""
    seed = draw(st.integers(0, 1 << 32))
    choose = random.Random(seed)
    problem, _ = random_cluster(seed, choose.choice((SMALL, MIDDLE)))
    goal = LoadGoal(skewed(choose, problem.previous), choose.choice((100, 105, 120)), choose.choice((0, 1, 5, 1_000)))
    return replace(problem, load=goal)


def levels(problem: PlacementProblem, table: tuple[Slot, ...]) -> dict[NodeId, Fraction]:
    """Each node's load relative to its fair part."""
    assert problem.load is not None
    borne: Counter[NodeId] = Counter()
    for slot in table:
        if slot.leader is not None:
            borne[slot.leader] += problem.load.loads.get(slot.slot_id, 0)
    weights = {node.node_id: node.weight for node in problem.nodes if node.weight}
    total = sum(borne.values())
    return {
        name: Fraction(borne[name] * sum(weights.values()), total * weight) for name, weight in weights.items() if total
    }


def both_tables(problem: PlacementProblem) -> tuple[Plan, tuple[Slot, ...], tuple[Slot, ...]]:
    """The plan, and the tables without and with the load stage."""
    planned = plan(problem)
    without = plan(replace(problem, load=None)).applied_to(problem.previous)
    return planned, without, planned.applied_to(problem.previous)


@given(loaded_clusters())
def test_the_first_two_stages_stay_as_good_as_they_were(problem: PlacementProblem) -> None:
    """Same certificate for them, same number of replicas of each slot, bands, zones, pins and exclusions kept."""
    planned, without, after = both_tables(problem)
    alone = plan(replace(problem, load=None)).certificate
    assert replace(planned.certificate, load=None, rows_before_load=()) == alone
    oracle = Oracle(replace(problem, load=None))
    held = Counter(name for slot in after for name in slot.replicas)
    led = Counter(slot.leader for slot in after if slot.leader is not None)
    assert all(least <= held[name] <= most for name, (least, most) in oracle.bands.items())
    assert all(least <= led[name] <= most for name, (least, most) in oracle.leader_bands(without).items())
    for before, slot in zip(without, after, strict=True):
        assert len(slot.replicas) == len(set(slot.replicas)) == len(before.replicas)
        assert set(slot.replicas) <= oracle.eligible[slot.slot_id]
        assert oracle.pins.get(slot.slot_id, frozenset()) <= set(slot.replicas)
        assert oracle.pinned_leaders.get(slot.slot_id, slot.leader) == slot.leader


@given(loaded_clusters())
def test_load_never_gets_worse_and_the_budget_is_kept(problem: PlacementProblem) -> None:
    """The greatest level falls or stays; no more replicas move than are allowed."""
    assert problem.load is not None
    planned, without, after = both_tables(problem)
    moved = sum(len(set(new.replicas) - set(old.replicas)) for old, new in zip(without, after, strict=True))
    stage = planned.certificate.load
    assert (stage is None) == (not any(node.weight for node in problem.nodes))
    if stage is None:
        return
    assert moved <= stage.moved <= problem.load.most_moves
    before, reached = levels(problem, without), levels(problem, after)
    assert str(max(before.values(), default=0)) == stage.before
    assert str(max(reached.values(), default=0)) == stage.after
    assert max(reached.values(), default=Fraction(0)) <= max(before.values(), default=Fraction(0))
    if max(before.values(), default=Fraction(0)) * 100 <= problem.load.target_percent:
        assert after == without


@given(loaded_clusters())
def test_fewer_changes_than_the_bound_never_reach_the_target(problem: PlacementProblem) -> None:
    """The bound counts, on each hot node, the fewest of its heaviest slots that cover what is too much."""
    assert problem.load is not None
    planned, _, after = both_tables(problem)
    stage = planned.certificate.load
    if stage is not None and max(levels(problem, after).values(), default=0) * 100 <= problem.load.target_percent:
        assert stage.leader_changes >= stage.least_leader_changes


@given(loaded_clusters())
def test_the_verifier_accepts_every_load_stage(problem: PlacementProblem) -> None:
    """It rebuilds the table before the stage from the certificate, and proves that one."""
    planned, _, after = both_tables(problem)
    assert verify(problem, after, planned.certificate) == []


def _loaded() -> tuple[PlacementProblem, Plan, tuple[Slot, ...]]:
    nodes = tuple(PlacementNode(f"n{index}", 1, 0) for index in range(4))
    settled = plan(PlacementProblem(empty_table(64), nodes, PlacementRules(2), Epoch(1))).applied_to(empty_table(64))
    choose = random.Random(3)
    goal = LoadGoal({slot.slot_id: choose.randint(10, 500) for slot in settled}, 105, 10)
    problem = PlacementProblem(settled, nodes, PlacementRules(2), Epoch(2), load=goal)
    planned = plan(problem)
    return problem, planned, planned.applied_to(settled)


def test_a_settled_table_with_hot_nodes_is_brought_under_the_target() -> None:
    """Four nodes with 64 slots of very different loads end within 5 % of the mean, mostly by leaderships alone."""
    problem, planned, after = _loaded()
    stage = planned.certificate.load
    assert stage is not None
    assert Fraction(stage.before) > Fraction(105, 100)
    assert max(levels(problem, after).values()) <= Fraction(105, 100)
    assert planned.certificate.moved == 0


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("after", "1", "the greatest level after"),
        ("before", "1", "the greatest level before"),
        ("leader_changes", 0, "leaders changed"),
        ("moved", 11, "11 claimed, 10 allowed"),
    ],
)
def test_a_load_stage_that_says_something_else_is_refused(field: str, value: object, complaint: str) -> None:
    """Each of its numbers is found out again."""
    problem, planned, after = _loaded()
    stage = planned.certificate.load
    assert stage is not None
    forged = replace(planned.certificate, load=replace(stage, **{field: value}))  # type: ignore[arg-type]
    assert any(complaint in sentence for sentence in verify(problem, after, forged))


def test_the_table_before_the_load_stage_belongs_to_the_proof() -> None:
    """Without it nobody could check what the first two stages did."""
    problem, planned, after = _loaded()
    forged = replace(planned.certificate, rows_before_load=())
    assert any("leaders changed" in sentence for sentence in verify(problem, after, forged))

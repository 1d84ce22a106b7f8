"""The planner against a naive minimum-cost flow: nothing that is legal and balanced moves less."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.core.identifiers import Epoch
from controlplane.core.placement.contract import PlacementNode
from controlplane.core.slot_table import Slot
from tests.helpers.naive_flow import NaiveFlow
from tests.helpers.placement_problems import Bounds, Problem, applied, naive_bounds, problems

_DEAR = 1 << 30
"""Above any sum of costs: forces the lower bounds."""

STUCK = Problem(
    (
        Slot(0, "b", ("c",), Epoch(1)),
        Slot(1, "b", ("c",), Epoch(1)),
        Slot(2, "a", (), Epoch(1)),
    ),
    (PlacementNode("a", 1, 0), PlacementNode("b", 1, 0), PlacementNode("c", 1, 0)),
    2,
)
"""One replica is missing, of slot 2, and only ``a`` lacks one, but ``a`` holds slot 2 already: it takes two moves."""


@example(STUCK)
@given(problems())
def test_no_legal_balanced_table_moves_fewer_replicas(problem: Problem) -> None:
    """The certificate's number of moves is the optimum of the flow problem, whatever the table before."""
    bounds = naive_bounds(problem)
    assert problem.solve().certificate.moved == _least_moves(problem, bounds)


@given(problems())
def test_no_choice_of_leaders_costs_less(problem: Problem) -> None:
    """Given the replica sets, heirs, then changes, then readiness and warmth are at their optimum, in this order."""
    bounds = naive_bounds(problem)
    planned = problem.solve()
    after = applied(problem.previous, planned)
    paid = sum(
        _leader_cost(problem, old, new, new.leader)
        for old, new in zip(problem.previous, after, strict=True)
        if new.leader is not None
    )
    assert paid == _least_leader_cost(problem, after, bounds)


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.integers(1, 3), st.integers(4, 9))
def test_larger_tables_after_large_changes_are_at_the_optimum_too(seed: int, replica_count: int, width: int) -> None:
    """Many exchanges in one plan, over several rounds, still end at the optimum: weights redrawn on a random table."""
    choose = random.Random(seed)
    names = [f"n{index}" for index in range(width)]
    rows = []
    for slot_id in range(30):
        holders = choose.sample(names[: 1 + width // 2] if seed % 2 else names, k=choose.randint(1, min(3, width // 2)))
        rows.append(Slot(slot_id, holders[0], tuple(sorted(holders[1:])), Epoch(1)))
    nodes = tuple(PlacementNode(name, choose.randint(1, 4), choose.choice((0, 0, 25))) for name in names)
    problem = Problem(tuple(rows), nodes, replica_count)
    planned = problem.solve()
    bounds = naive_bounds(problem)
    assert planned.certificate.moved == _least_moves(problem, bounds)
    after = applied(problem.previous, planned)
    paid = sum(_leader_cost(problem, *pair, pair[1].leader) for pair in zip(rows, after, strict=True))
    assert paid == _least_leader_cost(problem, after, bounds)


def _least_moves(problem: Problem, bounds: Bounds) -> int:
    flow = NaiveFlow()
    least, most = bounds.per_slot
    for slot in problem.previous:
        flow.edge("source", f"slot {slot.slot_id}", most)
        for name in bounds.replicas:
            flow.edge(f"slot {slot.slot_id}", f"node {name}", 1, int(name not in slot.replicas))
    for name, (lower, upper) in bounds.replicas.items():
        flow.edge(f"node {name}", "sink", lower, -_DEAR)
        flow.edge(f"node {name}", "sink", upper - lower)
    forced = sum(lower for lower, _ in bounds.replicas.values())
    units = len(problem.previous) * most if least else forced
    cost = flow.least_cost("source", "sink", units)
    assert cost is not None
    return cost + forced * _DEAR


def _least_leader_cost(problem: Problem, after: tuple[Slot, ...], bounds: Bounds) -> int:
    flow = NaiveFlow()
    for old, new in zip(problem.previous, after, strict=True):
        flow.edge("source", f"slot {new.slot_id}", 1)
        for name in new.replicas:
            flow.edge(f"slot {new.slot_id}", f"node {name}", 1, _leader_cost(problem, old, new, name))
    for name, (lower, upper) in bounds.leaders.items():
        flow.edge(f"node {name}", "sink", lower, -_DEAR)
        flow.edge(f"node {name}", "sink", upper - lower)
    forced = sum(lower for lower, _ in bounds.leaders.values())
    cost = flow.least_cost("source", "sink", sum(bool(slot.replicas) for slot in after))
    assert cost is not None
    return cost + forced * _DEAR


def _leader_cost(problem: Problem, old: Slot, new: Slot, leader: str | None) -> int:
    """Three costs in one number: a million for passing over the heirs, a thousand for a change, up to two for rank."""
    if leader == old.leader:
        return 0
    usable = {node.node_id for node in problem.nodes if node.weight}
    ready = {name for slot_id, name in problem.ready or () if slot_id == new.slot_id}
    heirs = set(old.replicas) & set(new.replicas) if old.leader not in usable else set()
    heirs = heirs & ready or heirs
    passed_over = bool(heirs) and leader not in heirs
    rank = 0 if leader in ready else 1 if leader in old.replicas else 2
    return 1_000_000 * passed_over + 1_000 + rank

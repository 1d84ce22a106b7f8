"""Placement problems for Hypothesis, small enough to be solved by brute strength, and the naive answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from math import ceil, floor

from hypothesis import strategies as st

from controlplane.core.decision import Certificate
from controlplane.core.identifiers import Epoch, NodeId, SlotId
from controlplane.core.placement import minimal
from controlplane.core.placement import verify as verifier
from controlplane.core.placement.contract import PlacementNode, PlacementProblem, PlacementRules, Plan
from controlplane.core.slot_table import Slot

NAMES = tuple("abcdefgh")


@dataclass(frozen=True)
class Problem:
    """What a planner is asked."""

    previous: tuple[Slot, ...]
    nodes: tuple[PlacementNode, ...]
    replica_count: int
    ready: frozenset[tuple[SlotId, NodeId]] | None = None

    def solve(self, epoch: int = 100) -> Plan:
        """The planner's answer."""
        return plan(self.previous, self.nodes, self.replica_count, Epoch(epoch), self.ready)


def plan(
    previous: tuple[Slot, ...],
    nodes: Sequence[PlacementNode],
    replica_count: int,
    epoch: Epoch,
    ready: frozenset[tuple[SlotId, NodeId]] | None = None,
) -> Plan:
    """The planner's answer to a problem without zones, pins and exclusions."""
    rules = PlacementRules(replica_count)
    return minimal.plan(PlacementProblem(previous, tuple(nodes), rules, epoch, ready or frozenset()))


def verify(
    previous: tuple[Slot, ...],
    nodes: Sequence[PlacementNode],
    replica_count: int,
    after: Sequence[Slot],
    certificate: Certificate,
) -> list[str]:
    """The verifier's opinion of an answer to such a problem."""
    problem = PlacementProblem(previous, tuple(nodes), PlacementRules(replica_count), Epoch(0))
    return verifier.verify(problem, after, certificate)


def new_table(slot_count: int) -> tuple[Slot, ...]:
    """A table that never had a node."""
    return tuple(Slot(slot_id, None, (), Epoch(0)) for slot_id in range(slot_count))


def applied(previous: tuple[Slot, ...], planned: Plan) -> tuple[Slot, ...]:
    """The whole table after a plan."""
    rows = {slot.slot_id: slot for slot in planned.slots}
    return tuple(rows.get(slot.slot_id, slot) for slot in previous)


def equal_nodes(count: int) -> tuple[PlacementNode, ...]:
    """Nodes of equal weight without limits, named n000, n001 and so on."""
    return tuple(PlacementNode(f"n{index:03}", 1, 0) for index in range(count))


@st.composite
def problems(draw: st.DrawFn, *, max_slots: int = 8, max_replicas: int = 3) -> Problem:
    """Any table, however unbalanced, with dead holders, missing and superfluous replicas; any weights and limits."""
    slot_count = draw(st.integers(1, max_slots))
    names = draw(st.lists(st.sampled_from(NAMES[:6]), unique=True, max_size=5))
    nodes = tuple(
        PlacementNode(name, draw(st.sampled_from((1, 1, 1, 2, 3, 7, 0))), draw(st.sampled_from((0, 0, 0, 1, 2, 5))))
        for name in names
    )
    rows = []
    for slot_id in range(slot_count):
        holders = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=max_replicas + 1))
        led = bool(holders) and draw(st.integers(0, 9)) > 0
        leader = holders[0] if led else None
        followers = tuple(sorted(holders[1:] if led else holders))
        rows.append(Slot(slot_id, leader, followers, Epoch(draw(st.integers(0, 9)))))
    known = [(row.slot_id, name) for row in rows for name in (*row.replicas, *names[:1])]
    ready = draw(st.none() | st.frozensets(st.sampled_from(known))) if known else None
    return Problem(tuple(rows), nodes, draw(st.integers(1, max_replicas)), ready)


@dataclass(frozen=True)
class Bounds:
    """What each node may hold and lead, and how many replicas each slot gets (least, most)."""

    per_slot: tuple[int, int]
    replicas: dict[NodeId, tuple[int, int]]
    leaders: dict[NodeId, tuple[int, int]]


def naive_bounds(problem: Problem) -> Bounds:
    """The water-filled shares by trying every set of nodes that might be full."""
    slots = len(problem.previous)
    caps = {node.node_id: min(node.capacity or slots, slots) for node in problem.nodes if node.weight}
    weights = {node.node_id: node.weight for node in problem.nodes if node.weight}
    room = sum(caps.values())
    fits = [count for count in range(1, problem.replica_count + 1) if count * slots <= room]
    per_slot = max(fits, default=1)
    total = per_slot * slots if fits else room
    shares = _shares(caps, weights, total)
    return Bounds(
        (per_slot if fits else 0, per_slot),
        {name: (floor(share), ceil(share)) for name, share in shares.items()},
        {name: (floor(share / per_slot), ceil(share / per_slot)) for name, share in shares.items()},
    )


def _shares(caps: dict[NodeId, int], weights: dict[NodeId, int], total: int) -> dict[NodeId, Fraction]:
    for full in chain.from_iterable(combinations(caps, size) for size in range(len(caps) + 1)):
        left = total - sum(caps[name] for name in full)
        weight = sum(weights[name] for name in caps if name not in full)
        level = Fraction(left, weight) if weight else None
        if level is None and left:
            continue
        if level is not None and any(weights[name] * level > caps[name] for name in caps if name not in full):
            continue
        if level is not None and any(weights[name] * level < caps[name] for name in full):
            continue
        return {name: Fraction(caps[name]) if name in full or level is None else weights[name] * level for name in caps}
    raise AssertionError("every total within the caps has a level")


def without(problem: Problem, name: NodeId) -> Problem:
    """The same problem after one node is gone."""
    return replace(problem, nodes=tuple(node for node in problem.nodes if node.node_id != name))


def counts(slots: Sequence[Slot], names: Sequence[NodeId]) -> tuple[dict[NodeId, int], dict[NodeId, int]]:
    """Replicas and leaderships of each node."""
    held, led = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for slot in slots:
        for name in slot.replicas:
            held[name] += 1
        if slot.leader is not None:
            led[slot.leader] += 1
    return held, led

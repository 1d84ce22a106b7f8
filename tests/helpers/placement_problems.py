"""Placement problems for Hypothesis, small enough to be solved by brute strength, and the naive answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.minimal import planner as minimal
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules, Plan
from controlplane.core.slots.proof import verify as verifier
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId

NAMES = tuple("abcdefgh")


@dataclass(frozen=True)
class Problem:
    """Placement problems for planners."""

    previous: tuple[Slot, ...]
    nodes: tuple[PlacementNode, ...]
    replica_count: int
    ready: frozenset[tuple[SlotId, NodeId]] | None = None

    def solve(self, epoch: int = 100) -> Plan:
        """The planner's answer."""
        return minimal.plan(self.asked(epoch))

    def asked(self, epoch: int = 100) -> PlacementProblem:
        """The problem in the planner's words."""
        rules = PlacementRules(self.replica_count)
        return PlacementProblem(self.previous, self.nodes, rules, Epoch(epoch), self.ready or frozenset())


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


def without(problem: Problem, name: NodeId) -> Problem:
    """The same problem after one node has left."""
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

"""Random clusters: nodes, rules, orders and previous tables of every kind."""

import random
from collections import Counter
from dataclasses import dataclass, replace

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules
from controlplane.core.slots.minimal.planner import plan
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch


@dataclass(frozen=True)
class Size:
    """How large random clusters are: the bounds of slots and of nodes, both included."""

    slots: tuple[int, int]
    nodes: tuple[int, int]


TINY = Size((1, 3), (0, 4))
SMALL = Size((1, 12), (0, 6))
LARGE = Size((64, 96), (8, 8))


def random_cluster(seed: int, size: Size) -> tuple[PlacementProblem, Counter[str]]:
    """A problem, and which features it has."""
    choose = random.Random(seed)
    features: Counter[str] = Counter()

    def has(feature: str, probability: float) -> bool:
        chosen = choose.random() < probability
        features[feature] += chosen
        return chosen

    slot_count = choose.randint(*size.slots)
    names = [f"n{index}" for index in range(choose.randint(*size.nodes))]
    weighted, capped, drained = has("weights", 0.4), has("capacities", 0.25), has("drains", 0.25)
    zoned = has("domains", 0.5)
    zones = choose.randint(1, 4)
    nodes = tuple(
        PlacementNode(
            name,
            0 if drained and choose.random() < 0.3 else (choose.choice((1, 2, 3, 7)) if weighted else 1),
            choose.randint(1, slot_count) if capped and choose.random() < 0.6 else 0,
            f"z{choose.randrange(zones)}" if zoned and choose.random() < 0.95 else "",
        )
        for name in names
    )
    rules = PlacementRules(
        replica_count=choose.randint(1, 4 if size is LARGE else 5),
        zone_rule=choose.choice((ZoneRule.HARD, ZoneRule.SOFT)) if zoned else choose.choice(list(ZoneRule)),
        replicas_per_zone=choose.choice((1, 1, 1, 2)),
        tolerance_percent=choose.choice((5, 10, 25, 100)) if has("bands", 0.25) else 0,
    )
    problem = PlacementProblem(empty_table(slot_count), nodes, rules, Epoch(100))
    if names and has("exclusions", 0.25):
        pairs = {(choose.randrange(slot_count), choose.choice(names)) for _ in range(choose.randint(1, slot_count))}
        problem = replace(problem, exclusions=tuple(Exclusion(*pair) for pair in pairs))
    if names and has("pins", 0.25):
        pairs = {(choose.randrange(slot_count), choose.choice(names)) for _ in range(choose.randint(1, slot_count))}
        problem = replace(problem, pins=tuple(Pin(*pair, choose.random() < 0.3) for pair in sorted(pairs)))
    kind = choose.choice(("arbitrary", "arbitrary", "planned", "planned", "new"))
    features[f"{kind} previous table"] += 1
    if kind == "arbitrary":
        problem = replace(problem, previous=_arbitrary(choose, slot_count, [*names, "gone", "lost"]))
    elif kind == "planned":
        problem = replace(problem, previous=_planned(choose, problem))
    known = [(slot.slot_id, name) for slot in problem.previous for name in (*slot.replicas, *names[:1])]
    if known and choose.random() < 0.5:
        problem = replace(problem, ready=frozenset(choose.sample(known, choose.randint(0, len(known)))))
    return problem, features


def _arbitrary(choose: random.Random, slot_count: int, names: list[str]) -> tuple[Slot, ...]:
    rows = []
    for slot_id in range(slot_count):
        holders = choose.sample(names, min(len(names), choose.randint(0, 5)))
        led = bool(holders) and choose.random() < 0.9
        rows.append(
            Slot(slot_id, holders[0] if led else None, tuple(sorted(holders[led:])), Epoch(choose.randint(0, 9)))
        )
    return tuple(rows)


def _planned(choose: random.Random, problem: PlacementProblem) -> tuple[Slot, ...]:
    """The table of a similar cluster, from which nodes have joined, left and changed since."""
    others = [replace(node, weight=node.weight or 1) for node in problem.nodes if choose.random() < 0.85]
    others += [
        PlacementNode(name, 1, 0, choose.choice(("", "z0"))) for name in ("gone", "lost") if choose.random() < 0.5
    ]
    rules = replace(problem.rules, replica_count=choose.randint(1, 4), tolerance_percent=0)
    return plan(PlacementProblem(problem.previous, tuple(others), rules, Epoch(50))).applied_to(problem.previous)

"""How long does a decision about the slot table take?

    python -m benchmarks.decision [--slots 16384] [--nodes 100] [--events 20] [--large]
        [--smallest]

For 3 and 5 hard zones, 3 replicas a slot: seeded single events from a settled table (a node leaves, it joins again),
and the worst known cases (first placement, new weights for all nodes, a zone lost, two replicas allowed in a zone, soft
zones). *Plan* is the planner with its certificate, *verify* the independent verifier. ``--large`` adds one run of
131,072 slots on 500 nodes.
Baseline: one pass of plain Python over the same table that counts each node's replicas, in the same run; ratios are
to its median.
Targets at the default size: a node leaves p50 50 ms, plan and verify together; a node joins p50 500 ms; the worst case
2 s; the large table 30 s.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from benchmarks.command_line import parsed
from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementNode, PlacementProblem, PlacementRules
from controlplane.core.slots.minimal.planner import plan
from controlplane.core.slots.proof.verify import verify
from controlplane.core.slots.table import Slot, empty_table
from controlplane.core.values.identifiers import Epoch

REPLICAS = 3
LEAVE_TARGET_MS = 50
JOIN_TARGET_MS = 500
WORST_TARGET_MS = 2_000
LARGE_TARGET_MS = 30_000
SMALLEST = {"slots": 64, "nodes": 10, "events": 1}
"""Two nodes in each of five zones: one can leave, and a zone can be lost."""
T = TypeVar("T")
Table = tuple[Slot, ...]


class Timings:
    """The times of one kind of event in milliseconds, with their target."""

    def __init__(self, what: str, target_ms: int) -> None:
        self.what = what
        self.target_ms = target_ms
        self.plan_ms: list[float] = []
        self.verify_ms: list[float] = []
        self.moved: list[int] = []

    def line(self, baseline_ms: float) -> str:
        """One line of the report."""
        both = [sum(pair) for pair in zip(self.plan_ms, self.verify_ms, strict=True)]
        p50, p95, worst = statistics.median(both), _p95(both), max(both)
        verdict = "met" if p50 <= self.target_ms else "MISSED"
        return (
            f"{self.what:34} plan p50 {statistics.median(self.plan_ms):7.0f}  verify p50 "
            f"{statistics.median(self.verify_ms):6.0f}  both p50 {p50:7.0f}  p95 {p95:7.0f}  max {worst:7.0f} ms  "
            f"{p50 / baseline_ms:6.1f} x baseline  moved {statistics.median(self.moved):7.0f}  "
            f"target p50 {self.target_ms} ms: {verdict}"
        )


def main() -> None:
    """Run every event and print the distributions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--slots", type=int, default=16_384)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--events", type=int, default=20, help="leaves and joins for each number of zones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", action="store_true", help="also 131,072 slots on 500 nodes")
    arguments = parsed(parser, SMALLEST)
    print(f"seed {arguments.seed}, {arguments.slots:,} slots, {arguments.nodes} nodes, {REPLICAS} replicas", flush=True)
    for zones in (3, 5):
        run(arguments.slots, arguments.nodes, zones, arguments.events, arguments.seed)
    if arguments.large:
        print("\n131,072 slots, 500 nodes, 5 hard zones", flush=True)
        table, nodes = empty_table(131_072), fleet(500, 5)
        first, after = once("first placement", LARGE_TARGET_MS, problem(table, nodes))
        leave, left = once("a node leaves", LARGE_TARGET_MS, problem(after, nodes[1:]))
        join, _ = once("a node joins", LARGE_TARGET_MS, problem(left, nodes))
        report([first, leave, join], after)


def run(slot_count: int, width: int, zones: int, events: int, seed: int) -> None:
    """Every event for one number of zones."""
    choose = random.Random(seed)
    nodes = fleet(width, zones)
    leaves, joins = Timings("a node leaves", LEAVE_TARGET_MS), Timings("a node joins", JOIN_TARGET_MS)
    worst, table = once("first placement", WORST_TARGET_MS, problem(empty_table(slot_count), nodes))
    timings = [leaves, joins, worst]
    settled = table
    for event in range(events):
        print(f"\r{zones} zones, event {event + 1} of {events} ...", end="", file=sys.stderr, flush=True)
        gone = choose.randrange(width)
        left = timed(leaves, problem(settled, nodes[:gone] + nodes[gone + 1 :]))
        settled = timed(joins, problem(left, nodes))
    weighted = tuple(replace(node, weight=choose.randint(1, 3)) for node in nodes)
    survivors = tuple(node for node in nodes if node.zone != nodes[0].zone)
    pairs = PlacementRules(REPLICAS, ZoneRule.HARD, 2)
    soft = PlacementRules(REPLICAS, ZoneRule.SOFT, 1)
    for what, asked in (
        ("new weights for all", problem(settled, weighted)),
        ("a zone is lost", problem(settled, survivors)),
        ("two of a slot allowed in a zone", replace(problem(settled, weighted), rules=pairs)),
        ("soft zones, new weights", replace(problem(settled, weighted), rules=soft)),
    ):
        timings.append(once(what, WORST_TARGET_MS, asked)[0])
    print(file=sys.stderr)
    print(f"\n{zones} hard zones", flush=True)
    report(timings, settled)


def report(timings: Sequence[Timings], table: Table) -> None:
    """Print the lines of one table's events beside the baseline."""
    passes = [clocked(lambda: count_replicas(table))[1] for _ in range(5)]
    baseline_ms = statistics.median(passes)
    print(f"baseline, one plain pass over the table: {baseline_ms:.1f} ms")
    for each in timings:
        print(each.line(baseline_ms), flush=True)


def once(what: str, target_ms: int, asked: PlacementProblem) -> tuple[Timings, Table]:
    """One event of a kind of its own, and the table after it."""
    timings = Timings(what, target_ms)
    return timings, timed(timings, asked)


def timed(timings: Timings, asked: PlacementProblem) -> Table:
    """Plan and verify once; the table after it."""
    planned, plan_ms = clocked(lambda: plan(asked))
    after = planned.applied_to(asked.previous)
    complaints, verify_ms = clocked(lambda: verify(asked, after, planned.certificate))
    if complaints:
        raise SystemExit(f"{timings.what}: the verifier refuses the plan: {complaints[:3]}")
    timings.plan_ms.append(plan_ms)
    timings.verify_ms.append(verify_ms)
    timings.moved.append(planned.certificate.moved)
    return after


def clocked(work: Callable[[], T]) -> tuple[T, float]:
    """The result of a function, and its time in milliseconds."""
    began = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - began) * 1_000


def fleet(width: int, zones: int) -> tuple[PlacementNode, ...]:
    """Equal nodes, spread over zones."""
    return tuple(PlacementNode(f"node-{index:03}", 1, 0, f"zone-{index % zones}") for index in range(width))


def problem(table: Table, nodes: tuple[PlacementNode, ...]) -> PlacementProblem:
    """At most one replica of a slot in a zone; the epoch is greater than all in the table."""
    epoch = Epoch(max(slot.leader_epoch for slot in table) + 1)
    return PlacementProblem(table, nodes, PlacementRules(REPLICAS, ZoneRule.HARD, 1), epoch)


def count_replicas(table: Table) -> Counter[str]:
    """The baseline: the number of replicas of each node."""
    counts: Counter[str] = Counter()
    for slot in table:
        for name in slot.replicas:
            counts[name] += 1
    return counts


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, round(0.95 * len(values)))]


if __name__ == "__main__":
    main()

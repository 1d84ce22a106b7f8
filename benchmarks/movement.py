"""How much does each placer move, and how balanced are its tables?

    python -m benchmarks.movement [--slots 1024] [--nodes 32] [--events 12] [--replicas 1 3] [--seed 1]
        [--smallest]

The same seeded histories of joins, leaves, weight changes and zone losses go through every placer. For each it prints

    moved/least     replicas moved, over the least that exact balance needs from the placer's own table before each
                    event, under the rules that it supports; below 1 it left the table unbalanced
    moved/minimal's replicas moved, over what the default policy moved in its own history
    replicas, leaders, load
                    the greatest over the node's share by weight: mean over the events, and worst. The load of a slot is
                    lognormal, on its slot leader; no placer knows it
    led anew        changes of leader of slots that had one, deaths included
    tables          how many tables followed one another for an event, on average
    ms              time of an event: median and greatest
    crowded         slots that have more replicas in a zone than necessary, in percent (histories with zones)

The first table is not counted. Baselines: every placer beside ``minimal``; the sources are in benchmarks/placers.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from benchmarks import fleet_histories
from benchmarks.command_line import parsed
from benchmarks.fleet_histories import Fleet, History
from benchmarks.placers.contract import Placer, Table
from benchmarks.placers.dicer import Dicer
from benchmarks.placers.hashing import rendezvous, ring
from benchmarks.placers.jump import Jump
from benchmarks.placers.least import LeastMovement, least_moves
from benchmarks.placers.ranges import Ranges
from benchmarks.placers.round_robin import RoundRobin
from benchmarks.placers.sofa import Sofa
from benchmarks.placers.sticky import Sticky
from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.minimal.contract import PlacementRules
from controlplane.core.values.identifiers import NodeId

LONGEST_SILENCE_S = 2.0
SMALLEST = {"slots": 32, "nodes": 8, "events": 2}
_HEADER = (
    f"{'':24}{'moved':>7}{'moved/':>8}{'moved/':>10}{'replicas':>14}{'leaders':>14}{'load':>14}{'led':>7}{'tables':>8}"
    f"{'ms':>14}\n{'':24}{'':>7}{'least':>8}{'minimal':>10}{'mean worst':>14}{'mean worst':>14}{'mean worst':>14}"
    f"{'anew':>7}{'/event':>8}{'p50    max':>14}"
)


@dataclass(slots=True)
class Outcome:
    """The results of one placer for a history; lists have an entry for each event."""

    placer: Placer
    moved: int = 0
    least: int = 0
    led_anew: int = 0
    tables: list[int] = field(default_factory=list)
    replicas: list[float] = field(default_factory=list)
    leaders: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    crowded: list[float] = field(default_factory=list)
    elapsed_ms: list[float] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every history through every placer and print a table for each history."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--slots", type=int, default=1_024)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--events", type=int, default=12)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser, SMALLEST, arguments)
    print(f"seed {options.seed}: {options.slots:,} slots, {options.nodes} nodes, {options.events} events a history")
    source = random.Random(f"{options.seed} loads")
    loads = [source.lognormvariate(0, 1) for _ in range(options.slots)]
    for replica_count in options.replicas:
        for kind in (fleet_histories.joins_and_leaves, fleet_histories.weights, fleet_histories.zone_losses):
            if replica_count == 1 and kind is fleet_histories.zone_losses:
                continue  # one replica cannot be spread
            history = kind(options.seed, options.nodes, options.events)
            outcomes = [
                measure(placer, history, loads, replica_count) for placer in placers(options.slots, replica_count)
            ]
            _print(history, replica_count, outcomes)


def placers(slot_count: int, replica_count: int) -> list[Placer]:
    """All of them, before their first table; ``minimal`` first."""
    return [
        LeastMovement(slot_count, PlacementRules(replica_count, ZoneRule.SOFT)),
        Dicer(slot_count, replica_count),
        Sticky(slot_count, replica_count),
        Sofa(slot_count, replica_count),
        rendezvous(slot_count, replica_count),
        ring(slot_count, replica_count),
        Jump(slot_count, replica_count),
        Ranges(slot_count, replica_count),
        RoundRobin(slot_count, replica_count),
    ]


def measure(placer: Placer, history: History, loads: Sequence[float], replica_count: int) -> Outcome:
    """One placer through one history."""
    outcome = Outcome(placer)
    rules = PlacementRules(replica_count, ZoneRule.SOFT if placer.heeds_zones else ZoneRule.IGNORED)
    table = placer.place(history.start)[-1]
    told_s = time.monotonic()
    for index, fleet in enumerate(history.fleets):
        if time.monotonic() - told_s > LONGEST_SILENCE_S:
            told_s = time.monotonic()
            print(f"  {placer.name}: event {index + 1} of {len(history.fleets)} ...", file=sys.stderr, flush=True)
        known = fleet if placer.heeds_weights else tuple(replace(node, weight=1) for node in fleet)
        outcome.least += least_moves(table, known, rules)
        began_s = time.perf_counter()
        tables = placer.place(fleet)
        outcome.elapsed_ms.append(1_000 * (time.perf_counter() - began_s))
        outcome.tables.append(len(tables))
        for before, after in pairwise((table, *tables)):
            outcome.moved += moves(before, after)
            outcome.led_anew += leader_changes(before, after)
        table = tables[-1]
        outcome.replicas.append(greatest_share(Counter(name for holders in table for name in holders), fleet))
        outcome.leaders.append(greatest_share(Counter(holders[0] for holders in table), fleet))
        outcome.load.append(greatest_share(_load_by_node(table, loads), fleet))
        outcome.crowded.append(100 * crowded_slots(table, fleet) / len(table))
    return outcome


def moves(before: Table, after: Table) -> int:
    """Replicas on nodes that did not hold the slot."""
    return sum(len(set(new).difference(old)) for old, new in zip(before, after, strict=True))


def leader_changes(before: Table, after: Table) -> int:
    """Slots that had a leader and have another one."""
    return sum(bool(old) and old[:1] != new[:1] for old, new in zip(before, after, strict=True))


def greatest_share(amounts: "Counter[NodeId] | dict[NodeId, float]", fleet: Fleet) -> float:
    """The greatest ratio of a node's amount to its share by weight."""
    total, weight = sum(amounts.values()), sum(node.weight for node in fleet)
    return max(amounts.get(node.node_id, 0) * weight / (total * node.weight) for node in fleet)


def crowded_slots(table: Table, fleet: Fleet) -> int:
    """Slots with more replicas in one zone than an even spread over the living zones has."""
    zones = {node.node_id: node.zone or node.node_id for node in fleet}
    count = len(set(zones.values()))
    return sum(max(Counter(zones[name] for name in holders).values()) > -(-len(holders) // count) for holders in table)


def _load_by_node(table: Table, loads: Sequence[float]) -> dict[NodeId, float]:
    load: dict[NodeId, float] = {}
    for holders, slot_load in zip(table, loads, strict=True):
        load[holders[0]] = load.get(holders[0], 0.0) + slot_load
    return load


def _print(history: History, replica_count: int, outcomes: Sequence[Outcome]) -> None:
    sizes = [len(fleet) for fleet in history.fleets]
    title = f"{history.name}, {replica_count} replica{'s' * (replica_count > 1)}, {min(sizes)} to {max(sizes)} nodes"
    weighted = any(node.weight != 1 for fleet in history.fleets for node in fleet)
    zoned = any(node.zone for node in history.start)
    print(f"\n{title}\n{_HEADER}{'crowded %' if zoned else '':>11}")
    for each in outcomes:
        ignored = [
            word
            for word, matters, heeded in (
                ("weights", weighted, each.placer.heeds_weights),
                ("zones", zoned, each.placer.heeds_zones),
            )
            if matters and not heeded
        ]
        print(
            f"{each.placer.name:24}{each.moved:7,}{_ratio(each.moved, each.least):>8}"
            f"{_ratio(each.moved, outcomes[0].moved):>10}{_spread(each.replicas)}{_spread(each.leaders)}"
            f"{_spread(each.load)}{each.led_anew:7,}{statistics.mean(each.tables):8.1f}"
            f"{statistics.median(each.elapsed_ms):7.1f}{max(each.elapsed_ms):7.1f}"
            + (f"{statistics.mean(each.crowded):11.1f}" if zoned else "")
            + (f"  ignores {' and '.join(ignored)}" if ignored else ""),
            flush=True,
        )


def _ratio(moved: int, reference: int) -> str:
    return f"{moved / reference:.3f}" if reference else "-"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):8.3f}{max(values):6.2f}"


if __name__ == "__main__":
    main()

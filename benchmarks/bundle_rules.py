"""Do the rules for bundles decide in time in a large cluster?

    python -m benchmarks.bundle_rules [--nodes 1000] [--bundles 100000] [--seed 1] [--smallest]

A seeded view of loads goes through every shedder, with settings under which many nodes shed. A view has as many bundles
for each node; usages are drawn evenly, throughputs of bundles are lognormal. Each rule decides once on a view that it
has not seen. Baseline: none. Target: at most two seconds for each rule.
"""

import argparse
import random
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from benchmarks.command_line import parsed
from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad, TimeAverage
from controlplane.core.bundles.load.plausible import plausible
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.bundles.shedding.contract import Shedder
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.score_pairs import AvgShedder, ScoreSettings
from controlplane.core.bundles.shedding.threshold import ThresholdSettings, ThresholdShedder
from controlplane.core.bundles.shedding.transfer import TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings

V = TypeVar("V")
TARGET_S = 2.0
SMALLEST = {"nodes": 4, "bundles": 40}
NAMESPACES = 50
MODULAR: tuple[tuple[str, Shedder[LoadView, Any]], ...] = (
    ("overload", OverloadShedder(OverloadSettings(20))),
    ("overload, Pulsar 2", OverloadShedder(OverloadSettings(20, unweighted=True, takes_any_known_bundle=True))),
    ("threshold", ThresholdShedder(ThresholdSettings(1, min_throughput_mib_per_s=0))),
    (
        "threshold, lower boundary",
        ThresholdShedder(ThresholdSettings(45, min_throughput_mib_per_s=0, lower_boundary_enabled=True)),
    ),
    ("uniform", UniformLoadShedder(UniformSettings(max_share=0.5))),
    ("avg, plan by name", AvgShedder(ScoreSettings(low_hits=1, max_share=0.5))),
    ("avg, plan by averages", AvgShedder(ScoreSettings(low_hits=1, max_share=0.5, plans_by_averages=True))),
)
TRANSFER = TransferSettings(hit_count=0, target_deviation=0.001)


@dataclass(frozen=True)
class EveryNode:
    """Every bundle may go to every node."""

    def owns(self, node_id: str, bundle_id: str) -> bool:
        """Every node owns what it reports."""
        return bool(node_id and bundle_id)

    def has_policies(self, namespace: str) -> bool:
        """No policies."""
        return not namespace

    def allowed_nodes(self, bundle_id: str, nodes: AbstractSet[str]) -> AbstractSet[str]:
        """All."""
        return nodes if bundle_id else frozenset()


def view_of(nodes: int, bundles: int, seed: int) -> LoadView:
    """A view with these numbers of nodes and bundles."""
    drawn = random.Random(seed)
    histories: dict[str, BundleHistory] = {}
    views: dict[str, NodeView] = {}
    for node in range(nodes):
        names = [f"t/n{index % NAMESPACES}/0x{index:08x}" for index in range(node, bundles, nodes)]
        total = MessageLoad(0.0, 0.0, 0.0, 0.0)
        for name in names:
            throughput = drawn.lognormvariate(12, 1)
            load = MessageLoad(throughput, throughput, throughput / 1_000, throughput / 1_000)
            histories[name] = BundleHistory(BundleAverages(TimeAverage(10, 10, load), TimeAverage(1_000, 1_000, load)))
            total = total.plus(load)
        cpu = ResourceUsage(100 * drawn.random(), 100.0)
        views[f"n{node}"] = NodeView(NodeLoad(f"n{node}", cpu=cpu, traffic=total, bundles=tuple(names)))
    return LoadView(views, histories)


def transfer_view_of(view: LoadView) -> TransferView:
    """The same loads as the nodes of an extensible load manager report them, with all of their bundles."""
    loads = {}
    top_bundles = {}
    for node_id, node in view.nodes.items():
        throughput = node.load.traffic.throughput_bytes_per_s
        loads[node_id] = StoredLoad(node.load.cpu.usage / 100, 0, throughput, throughput, 0)
        reported = (
            ReportedBundle(name, view.bundles[name].averages.short_term.load.throughput_bytes_per_s)
            for name in node.load.bundles
        )
        top_bundles[node_id] = tuple(sorted(reported, key=lambda each: each.bytes_per_s))
    return TransferView(loads, frozenset(loads), top_bundles)


def main() -> None:
    """Create the views, and print for each rule the number of its choices and its time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--bundles", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser, SMALLEST)
    view = view_of(options.nodes, options.bundles, options.seed)
    print(f"{options.nodes:,} nodes, {options.bundles:,} bundles; target at most {TARGET_S} s for each rule")
    began_s = time.perf_counter()
    kept, _ = plausible(view)
    print(f"{'plausible loads':26} {len(kept.bundles):7,} bundles {time.perf_counter() - began_s:7.2f} s")
    for name, shedder in MODULAR:
        _measure(name, shedder, view)
    transfers = replace(transfer_view_of(view), checks=EveryNode())
    _measure("transfer", TransferShedder(TRANSFER), transfers)
    _measure("transfer, all pairs", TransferShedder(replace(TRANSFER, max_pairs=options.nodes)), transfers)


def _measure(name: str, shedder: Shedder[V, Any], view: V) -> None:
    began_s = time.perf_counter()
    choices = shedder.shed(view, shedder.first_memory).choices
    print(f"{name:26} {len(choices):7,} bundles {time.perf_counter() - began_s:7.2f} s")


if __name__ == "__main__":
    main()

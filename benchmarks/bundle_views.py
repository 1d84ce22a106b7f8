"""Seeded views of loads for the benchmarks of the rules for bundles.

A view has as many bundles for each node; usages are drawn evenly, throughputs of bundles are lognormal.
"""

import random
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from controlplane.core.bundles.load.averages import BundleAverages, TimeAverage, message_load, node_averages
from controlplane.core.bundles.load.measured_node import measured
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView, Resources
from controlplane.core.bundles.placement.context import PlacementPolicies
from controlplane.core.bundles.placement.isolation import IsolationPolicies, IsolationPolicy
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from controlplane.core.bundles.shedding.transfer_view import ReportedBundle, TransferView

NAMESPACES = 50
_WIDTH = 16


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
    """A view with these numbers of nodes and bundles; every node has reported a sample of each of its bundles."""
    drawn = random.Random(seed)
    histories: dict[str, BundleHistory] = {}
    views: dict[str, NodeView] = {}
    for node in range(nodes):
        names = [_bundle_id(index) for index in range(node, bundles, nodes)]
        samples = [_sample(name, drawn) for name in names]
        for each in samples:
            load = message_load(each)
            averages = BundleAverages(TimeAverage(10, 10, load), TimeAverage(1_000, 1_000, load))
            histories[each.bundle_id] = BundleHistory(averages, each.topic_count)
        name = f"n{node}:8080"
        load_of_node = NodeLoad(name, version="4.2.4" if node % 2 else "4.2.3")
        load_of_node = measured(load_of_node, Resources(cpu=ResourceUsage(100 * drawn.random(), 100.0)), samples)
        views[name] = NodeView(load_of_node, node_averages(names, {each: histories[each].averages for each in names}))
    return LoadView(views, histories)


def _bundle_id(index: int) -> str:
    return f"t/n{index % NAMESPACES}/0x{index * _WIDTH:08x}_0x{(index + 1) * _WIDTH:08x}"


def _sample(name: str, drawn: random.Random) -> BundleLoad:
    throughput = drawn.lognormvariate(12, 1)
    topics = drawn.randrange(1_200)
    rate = throughput / 1_000
    return BundleLoad(name, rate, rate, throughput, throughput, topics, topics, topics, 0)


def rules_of(nodes: Mapping[str, NodeView]) -> PlacementPolicies:
    """Isolation policies for half of the namespaces, anti-affinity groups of five namespaces, four failure domains."""
    policies = tuple(
        IsolationPolicy(f"p{index}", (f"t/n{index}",), (rf"n[0-9]*{index % 10}",), ("n.*",), 1)
        for index in range(0, NAMESPACES, 2)
    )
    return PlacementPolicies(
        IsolationPolicies(policies),
        {f"t/n{index}": f"g{index // 5}" for index in range(NAMESPACES)},
        {node_id: f"d{index % 4}" for index, node_id in enumerate(nodes)},
    )


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
    return TransferView(loads, frozenset(loads), 0, EveryNode(), top_bundles)

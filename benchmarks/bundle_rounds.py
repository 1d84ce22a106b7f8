"""One round of each rule for bundles, to be measured: a name and a function that answers how much it has chosen."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.bundle_views import NAMESPACES, rules_of, transfer_view_of
from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, message_load
from controlplane.core.bundles.load.leader_fold import FoldSettings, LeaderLoads, bundles_to_store, fold
from controlplane.core.bundles.load.measured_node import measured
from controlplane.core.bundles.load.plausible import plausible
from controlplane.core.bundles.load.report_rule import ReportSettings, need_report
from controlplane.core.bundles.load.smoothed_node import NO_MEASUREMENT, SmoothingSettings, smoothed
from controlplane.core.bundles.load.stored_load import StoredLoad
from controlplane.core.bundles.load.top_bundles import TopBundlesSettings, top_bundles
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, Resources
from controlplane.core.bundles.placement.assignment import assign
from controlplane.core.bundles.placement.context import ExtensibleContext, RegisteredNode, modular_context
from controlplane.core.bundles.placement.contract import BundleToPlace, PlacementStrategy
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement
from controlplane.core.bundles.placement.extensible import ExtensiblePlacementSettings as ExtensibleSettings
from controlplane.core.bundles.placement.least_message_rate import LeastMessageRate
from controlplane.core.bundles.placement.least_resource_usage import LeastResourceUsage, LeastStoredUsage
from controlplane.core.bundles.placement.modular import ModularPlacement, ModularPlacementSettings
from controlplane.core.bundles.placement.round_robin import RoundRobin
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import compose
from controlplane.core.bundles.profiles.values import CONTROLPLANE
from controlplane.core.bundles.ranges import HashRange
from controlplane.core.bundles.settings.managers import EXTENSIBLE_MANAGER
from controlplane.core.bundles.shedding.avg_shedder import AvgShedder, AvgShedderSettings
from controlplane.core.bundles.shedding.contract import Shedder
from controlplane.core.bundles.shedding.overload import OverloadSettings, OverloadShedder
from controlplane.core.bundles.shedding.threshold import ThresholdSettings, ThresholdShedder
from controlplane.core.bundles.shedding.transfer import TransferSettings, TransferShedder
from controlplane.core.bundles.shedding.uniform import UniformLoadShedder, UniformSettings
from controlplane.core.bundles.splitting.contract import SplitRequest
from controlplane.core.bundles.splitting.leader_task import bundles_to_split
from controlplane.core.bundles.splitting.limits import SplitSettings
from controlplane.core.bundles.splitting.owner_task import NO_HITS, OwnerSplitSettings, OwnerView, find_owner_splits

Round = tuple[str, Callable[[], int]]

SELECTIONS = 100
"""Bundles that are placed in one round, one after the other."""

_MODULAR: tuple[tuple[str, Shedder[LoadView, Any]], ...] = (
    ("overload", OverloadShedder(OverloadSettings(20))),
    (
        "overload, Pulsar 2",
        OverloadShedder(OverloadSettings(20, compares_unweighted_usage=True, takes_any_known_bundle=True)),
    ),
    ("threshold", ThresholdShedder(ThresholdSettings(1, min_throughput_mib_per_s=0))),
    (
        "threshold, lower boundary",
        ThresholdShedder(ThresholdSettings(45, min_throughput_mib_per_s=0, lower_boundary_enabled=True)),
    ),
    ("uniform", UniformLoadShedder(UniformSettings(max_share=0.5))),
    ("avg, plan by name", AvgShedder(AvgShedderSettings(low_hits=1, max_share=0.5))),
    ("avg, plan by averages", AvgShedder(AvgShedderSettings(low_hits=1, max_share=0.5, plans_by_averages=True))),
)
_TRANSFER = TransferSettings(hit_count=0, target_deviation=0.001)
_COUNTS = {f"t/n{index}": 4 for index in range(NAMESPACES)}


def rounds(view: LoadView) -> Iterator[Round]:
    """All of them, in the order of a cluster's life: report, fold, shed, place, split."""
    yield from _reports(view)
    yield from _folds(view)
    yield from _sheddings(view)
    yield from _placements(view)
    yield from _splits(view)


def _reports(view: LoadView) -> Iterator[Round]:
    loads = [node.load for node in view.nodes.values()]

    def resources(load: NodeLoad) -> Resources:
        return Resources(load.cpu, load.memory, load.direct_memory, load.bandwidth_in, load.bandwidth_out)

    def top(stats: list[list[Any]]) -> int:
        return sum(
            len(top_bundles(each, TopBundlesSettings(), is_isolated=lambda _: False, groups={})) for each in stats
        )

    yield "measure every node", lambda: len([measured(each, resources(each), each.stats.values()) for each in loads])
    settings, smoothing = ReportSettings(), SmoothingSettings()
    yield "need to report", lambda: sum(need_report(each, each, 10**6, settings).needed for each in loads)
    yield (
        "smooth every node",
        lambda: len([smoothed(NO_MEASUREMENT, resources(each), each.traffic, (1, 1), smoothing, 1) for each in loads]),
    )
    yield "busiest of every node", lambda: top([list(each.stats.values()) for each in loads])
    yield "busiest of one node", lambda: top([[stats for each in loads for stats in each.stats.values()]])


def _folds(view: LoadView) -> Iterator[Round]:
    loads = LeaderLoads(view.nodes, view.bundles)
    reports = {node_id: node.load for node_id, node in view.nodes.items()}
    every = FoldSettings(samples_unchanged_reports=True)
    yield "fold, first", lambda: len(fold(LeaderLoads(), reports, every).loads.bundles)
    yield "fold, next", lambda: len(fold(loads, reports, every).loads.bundles)
    yield "fold, nothing new", lambda: len(fold(loads, reports, FoldSettings()).loads.bundles)
    yield "histories to store", lambda: len(bundles_to_store(loads, 10, FoldSettings()))
    yield "plausible loads", lambda: len(plausible(view)[0].bundles)


def _sheddings(view: LoadView) -> Iterator[Round]:
    def shed(rule: Shedder[Any, Any], seen: object) -> Callable[[], int]:
        return lambda: len(rule.shed(seen, rule.first_memory).choices)

    for name, shedder in _MODULAR:
        yield name, shed(shedder, view)
    transfers = transfer_view_of(view)
    yield "transfer", shed(TransferShedder(_TRANSFER), transfers)
    yield "transfer, all pairs", shed(TransferShedder(replace(_TRANSFER, max_pairs=len(view.nodes))), transfers)


def _placements(view: LoadView) -> Iterator[Round]:
    rules, loads = rules_of(view.nodes), LeaderLoads(view.nodes, view.bundles)
    unseen = BundleHistory(UNSEEN_BUNDLE)
    wanted = [BundleToPlace(f"t/n{index % NAMESPACES}/new{index}", unseen) for index in range(SELECTIONS)]

    def modular(strategy: PlacementStrategy[LoadView, Any]) -> Callable[[], int]:
        def run() -> int:
            rule = ModularPlacement(strategy, ModularPlacementSettings(uses_domains=True, prefers_later_versions=True))
            context, memory, found = modular_context(loads, tuple(loads.nodes), rules), rule.first_memory, 0
            for bundle in wanted:
                assigned = assign(rule, bundle, context, memory, (0.0, 0.0))
                context, memory = assigned.context, assigned.memory
                found += assigned.node_id is not None
            return found

        return run

    def extensible() -> int:
        nodes = view.nodes.items()
        context = ExtensibleContext(
            {node_id: RegisteredNode(node.load.version, EXTENSIBLE_MANAGER) for node_id, node in nodes},
            {node_id: StoredLoad(node.load.cpu.usage / 100) for node_id, node in nodes},
            {bundle_id: node_id for node_id, node in nodes for bundle_id in node.load.bundles},
            rules,
        )
        rule = ExtensiblePlacement(
            LeastStoredUsage(), ExtensibleSettings(uses_domains=True, prefers_later_versions=True)
        )
        return sum(rule.place(each, context, None, 0.0).node_id is not None for each in wanted)

    yield "index of served bundles", lambda: len(modular_context(loads, tuple(loads.nodes), rules).served.ranges)
    yield f"assign {SELECTIONS}, least rate", modular(LeastMessageRate())
    yield f"assign {SELECTIONS}, least usage", modular(LeastResourceUsage())
    yield f"assign {SELECTIONS}, round robin", modular(RoundRobin())
    yield f"select {SELECTIONS}, extensible", extensible


def _splits(view: LoadView) -> Iterator[Round]:
    algorithms = chosen_rules(compose(CONTROLPLANE)).split_algorithms

    def owners() -> int:
        rule, settings = algorithms.executed(""), OwnerSplitSettings(max_hits=0)
        found = 0
        for node_id, node in view.nodes.items():
            seen = OwnerView(node_id, node.load.stats, frozenset(node.load.bundles), bundle_counts=_COUNTS)
            found += len(find_owner_splits(seen, NO_HITS, rule, settings).splits)
        return found

    topics = tuple(f"persistent://t/n/{bundle_id}" for bundle_id in view.bundles)
    loads = {
        topic: message_load(stats)
        for topic, stats in zip(
            topics, (stats for node in view.nodes.values() for stats in node.load.stats.values()), strict=True
        )
    }
    request = SplitRequest(HashRange(0, 2**32 - 1), topics, loads, tuple(range(1, len(topics))), is_forced=True)

    def divided(name: str) -> Callable[[], int]:
        return lambda: len(algorithms.configured(name).choose(request).positions)

    yield "leader's split task", lambda: len(bundles_to_split(view, _COUNTS, SplitSettings()))
    yield "every owner's split task", owners
    for name in sorted(algorithms.by_name):
        yield name, divided(name)

"""Load reports folded one after the other, and evaluated with every bundle in memory: the oracle of the pipeline.

It follows the definitions as directly as it can, and knows neither columns nor buckets nor batches.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from controlplane.core.bundles.load.averages import NO_LOAD, UNSEEN_BUNDLE, MessageLoad, message_load
from controlplane.core.bundles.load.plausible import Implausible, implausible_load, implausible_node
from controlplane.core.bundles.load.reported_state import BundleState, BundleSums, NodeState, Position
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.reports import BundleLoad
from controlplane.core.bundles.shedding.contract import Shedding
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, throughput, until_target
from controlplane.core.bundles.shedding.threshold import ThresholdMemory, ThresholdShedder
from controlplane.core.bundles.splitting.limits import (
    MeasuredBundle,
    SplitChoice,
    SplitLimits,
    choose_splits,
    exceeded_limits,
)
from streaming.config import LoadRuleConfig
from tests.helpers.placed_report import PlacedReport

Each = TypeVar("Each")


def in_log_order(items: Iterable[Each], position: Callable[[Each], Position]) -> Iterator[Each]:
    """Within a partition by offset; of several partitions the one goes on whose next item was appended first."""
    partitions: dict[int, list[Each]] = defaultdict(list)
    for item in items:
        partitions[position(item).partition].append(item)
    in_order = (sorted(each, key=lambda item: position(item).offset) for each in partitions.values())
    return heapq.merge(*in_order, key=position)


class PlainLoad:
    """All bundles and nodes that were ever reported, by their ids."""

    def __init__(self) -> None:
        """Before the first report."""
        self.bundles: dict[str, BundleState] = {}
        self.nodes: dict[str, NodeState] = {}

    def fold(self, reports: Iterable[PlacedReport], weights: ResourceWeights) -> list[Implausible]:
        """Fold reports in, in the order of the log. Return the figures that were passed over."""
        found: list[Implausible] = []
        samples: dict[str, list[tuple[BundleLoad, PlacedReport]]] = defaultdict(list)
        for report in in_log_order(reports, lambda each: each.position):
            known = self.nodes.get(report.node_id)
            if known is not None and report.incarnation < known.incarnation:
                continue
            reported = NO_LOAD
            for load in sorted(report.bundles):
                wrong = implausible_load(message_load(load))
                if wrong is None:
                    if self._is_new(load, report):
                        samples[load.bundle_id].append((load, report))
                    reported = reported.plus(message_load(load))
                else:
                    found.append(Implausible(report.node_id, load.bundle_id, *wrong))
            wrong = implausible_node(NodeLoad(report.node_id, *report.resources, traffic=reported))
            if wrong is not None:
                found.append(Implausible(report.node_id, "", *wrong))
                continue
            usage = weighted_usage(report.resources, weights)
            if known is not None and not report.position.is_behind(known.position):
                continue
            kept = (None, None, None) if known is None else known[-3:]
            self.nodes[report.node_id] = NodeState(
                report.node_id,
                report.position,
                report.incarnation,
                report.resources,
                report.version,
                usage,
                len(report.bundles),
                reported,
                *kept,
            )
        for of_bundle in samples.values():
            for load, report in in_log_order(of_bundle, lambda sample: sample[1].position):
                if self._is_new(load, report):  # a report may name a bundle twice
                    self._fold_bundle(load, report)
        return found

    def _is_new(self, load: BundleLoad, report: PlacedReport) -> bool:
        known = self.bundles.get(load.bundle_id)
        _, partition, offset = report.position
        return known is None or offset > known.folded_offsets.get(partition, -1)

    def _fold_bundle(self, load: BundleLoad, report: PlacedReport) -> None:
        known = self.bundles.get(load.bundle_id)
        time_ms, partition, offset = report.position
        folded: Mapping[int, int] = {}
        if known is None:
            first_ms, moved_ms, before = time_ms, None, UNSEEN_BUNDLE
        else:
            first_ms, before, folded = known.first_report_time_ms, known.averages, known.folded_offsets
            moved_ms = known.moved_at_ms if known.node_id == report.node_id else time_ms
        self.bundles[load.bundle_id] = BundleState(
            load.bundle_id,
            report.node_id,
            report.position,
            first_ms,
            moved_ms,
            load,
            before.add(message_load(load)),
            {**folded, partition: offset},
        )


def bundle_row(bundle: BundleState, bucket: int = 0) -> tuple[object, ...]:
    """A bundle as a row of ``bundle_load``."""
    return (
        bundle.bundle_id,
        bucket,
        bundle.namespace,
        bundle.node_id,
        *bundle.position,
        bundle.first_report_time_ms,
        bundle.moved_at_ms,
        *bundle.newest[1:],
        (bundle.averages.short_term.sample_count, *bundle.averages.short_term.load),
        (bundle.averages.long_term.sample_count, *bundle.averages.long_term.load),
        dict(bundle.folded_offsets),
    )


class PlainBundles:
    """The bundles that count at an evaluation, in memory: what ``StoredBundles`` reads from a table."""

    def __init__(
        self, bundles: Iterable[BundleState], counted: Sequence[NodeState], now_ms: int, grace_period_ms: int
    ) -> None:
        """Take those of the counted nodes."""
        newest = {node.node_id: node.position for node in counted}
        self.owned = sorted(
            (
                bundle
                for bundle in bundles
                if bundle.node_id in newest and not newest[bundle.node_id].is_behind(bundle.position)
            ),
            key=lambda each: (each.node_id, each.bundle_id),
        )
        self.resting = {
            bundle.bundle_id
            for bundle in self.owned
            if bundle.moved_at_ms is not None and now_ms - bundle.moved_at_ms < grace_period_ms
        }

    def sums(self) -> Mapping[str, BundleSums]:
        """One addition after the other."""
        found: dict[str, BundleSums] = {}
        for bundle in self.owned:
            before = found.get(bundle.node_id, BundleSums(0, NO_LOAD, NO_LOAD))
            found[bundle.node_id] = BundleSums(
                before.owned_count + 1,
                before.short_term.plus(bundle.averages.short_term.load),
                before.long_term.plus(bundle.averages.long_term.load),
            )
        return found

    def busiest(self, targets: Mapping[str, float]) -> Iterator[BundleState]:
        """By the rule's own functions."""
        known = {each.bundle_id: each for each in self.owned}
        histories = {name: BundleHistory(each.averages) for name, each in known.items()}
        sheddable = SheddableBundles(LoadView({}, histories, self.resting))
        for node_id, target in targets.items():
            mine = [each.bundle_id for each in self.owned if each.node_id == node_id]
            for chosen in until_target(sheddable.of(mine, throughput), target):
                yield known[chosen.bundle_id]

    def exceeding(self, allowed: SplitLimits) -> tuple[list[BundleState], Mapping[str, int]]:
        """Every bundle is looked at."""
        found = [bundle for bundle in self.owned if exceeded_limits(measured(bundle), allowed)]
        return found, self.counts()

    def counts(self) -> Mapping[str, int]:
        """How many bundles each namespace has."""
        counts: dict[str, int] = {}
        for bundle in self.owned:
            counts[bundle.namespace] = counts.get(bundle.namespace, 0) + 1
        return counts


def measured(bundle: BundleState) -> MeasuredBundle:
    """A bundle as an input of the rule for splits."""
    long_term: MessageLoad = bundle.averages.long_term.load
    sessions = bundle.newest.producer_count + bundle.newest.consumer_count
    return MeasuredBundle(
        bundle.bundle_id,
        bundle.namespace,
        bundle.node_id,
        bundle.newest.topic_count,
        sessions,
        long_term.message_rate_per_s,
        long_term.throughput_bytes_per_s,
    )


def plain_evaluation(
    counted: Sequence[NodeState], bundles: PlainBundles, last_evaluated_ms: int | None, rules: LoadRuleConfig
) -> tuple[Shedding[ThresholdMemory], tuple[SplitChoice, ...]]:
    """Both rules applied once, each to all bundles at once."""
    former = {
        node.node_id: node.smoothed_usage
        for node in counted
        if node.smoothed_usage is not None and node.smoothed_at_ms == last_evaluated_ms
    }
    mine: dict[str, list[str]] = {node.node_id: [] for node in counted}
    for bundle in bundles.owned:
        mine[bundle.node_id].append(bundle.bundle_id)
    nodes = {
        node.node_id: NodeView(NodeLoad(node.node_id, traffic=node.reported, bundles=tuple(mine[node.node_id])))
        for node in counted
    }
    histories = {each.bundle_id: BundleHistory(each.averages, each.newest.topic_count) for each in bundles.owned}
    shedding = ThresholdShedder(rules.shed).shed_by_usage(
        LoadView(nodes, histories, bundles.resting),
        {node.node_id: node.weighted_usage for node in counted},
        ThresholdMemory(former),
    )
    splits = choose_splits([measured(bundle) for bundle in bundles.owned], bundles.counts(), len(counted), rules.split)
    return shedding, splits

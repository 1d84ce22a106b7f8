"""Shedding by a node whose usage exceeds the mean of all nodes (Pulsar's ThresholdShedder).

Each cycle smooths the usage of each node. A node whose smoothed usage exceeds the mean by the threshold sheds its
busiest bundles, until their throughput is its excess share of the node's throughput. If no node sheds and the lower
boundary is enabled, a node far below the mean makes the busiest node shed.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB, ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import LoadView, NodeLoad, NodeView
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, PERCENT, SHARE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable
from controlplane.core.bundles.shedding.contract import (
    Evidence,
    ShedChoice,
    Shedding,
    ShedReason,
    Skip,
    SkipReason,
    UnloadOutcome,
)
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, throughput, until_target

RULE_NAME: Final = "ThresholdShedder"
SMOOTHED_USAGE: Final = "smoothed_usage"
MEAN_USAGE: Final = "mean_usage"
_TARGET: Final = "target_bytes_per_s"
_MARGIN: Final = 0.05
"""Share of the throughput to shed beyond the excess, so that the node does not end at the threshold again."""
_LOWER_BOUNDARY_FACTOR: Final = 0.5


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """Settings of the rule. The defaults are Pulsar's, without its quirk.

    Attributes:
        threshold_percent: greatest distance of a node's usage above the mean, in percentage points.
        history_weight: weight of the former smoothed usage, 0 to 1.
        min_throughput_mib_per_s: a node that should shed less than this, in MiB/s, sheds nothing.
        lower_boundary_enabled: if no node sheds by the threshold, but the usage of one is below the mean by more than
            the threshold, the busiest node sheds.
        weights: weights of the resources.
        smooths_again_for_lower_boundary: quirk C: before the lower boundary is applied, the usages are smoothed a
            second time with the same reports, so that in such cycles the history fades twice as fast.
    """

    threshold_percent: float = knob("loadBalancerBrokerThresholdShedderPercentage", 10, PERCENT, accepted=NOT_NEGATIVE)
    history_weight: float = knob("loadBalancerHistoryResourcePercentage", 0.9, SHARE, accepted=SHARE)
    min_throughput_mib_per_s: float = knob(
        "loadBalancerBundleUnloadMinThroughputThreshold", 10.0, NOT_NEGATIVE, accepted=NOT_NEGATIVE
    )
    lower_boundary_enabled: bool = knob("lowerBoundarySheddingEnabled", default=False)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    smooths_again_for_lower_boundary: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigurationError: a value is negative, or ``history_weight`` is greater than 1.
        """
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class ThresholdMemory:
    """The smoothed usage of each node that was ever seen and not dropped since; 1.0 means 100 percent."""

    smoothed_usages: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThresholdShedder:
    """The rule under its settings."""

    settings: ThresholdSettings = field(default_factory=ThresholdSettings)

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULE_NAME

    @property
    def first_memory(self) -> ThresholdMemory:
        """No node has a history."""
        return ThresholdMemory()

    def retain(self, memory: ThresholdMemory, active: AbstractSet[str]) -> ThresholdMemory:
        """Only active nodes keep their history; one that comes back starts with its usage."""
        return ThresholdMemory({name: usage for name, usage in memory.smoothed_usages.items() if name in active})

    def after_unload(
        self, memory: ThresholdMemory, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int
    ) -> ThresholdMemory:
        """The memory as it is: usages do not depend on what came of a choice."""
        del choice, outcome, now_ms
        return memory

    def shed(self, view: LoadView, memory: ThresholdMemory) -> Shedding[ThresholdMemory]:
        """The result of one cycle. Sums and choices have the order of the nodes in the view."""
        usages = {node_id: weighted_usage(node.load, self.settings.weights) for node_id, node in view.nodes.items()}
        return self.shed_by_usage(view, usages, memory)

    def shed_by_usage(
        self, view: LoadView, usages: Mapping[str, float], memory: ThresholdMemory
    ) -> Shedding[ThresholdMemory]:
        """The result of one cycle for weighted usages that are known already, one for each node of the view."""
        memory, mean = self._smooth(usages, memory)
        if mean == 0:
            return Shedding((), memory, (Skip(SkipReason.NO_LOAD),), {MEAN_USAGE: mean})
        sheddable = SheddableBundles(view)
        threshold = self.settings.threshold_percent / 100.0
        choices: list[ShedChoice] = []
        skips: list[Skip] = []
        for node_id, node in view.nodes.items():
            usage = memory.smoothed_usages[node_id]
            if usage < mean + threshold:
                continue
            target = throughput(node.load.traffic) * (usage - mean - threshold + _MARGIN)
            evidence = (Evidence(SMOOTHED_USAGE, usage, mean + threshold),)
            chosen, skipped = self._choose(node.load, target, sheddable, ShedReason.ABOVE_MEAN, evidence)
            choices += chosen
            skips += skipped
        if not choices and self.settings.lower_boundary_enabled:
            if self.settings.smooths_again_for_lower_boundary:
                memory, mean = self._smooth(usages, memory)
            chosen, skipped = self._below_lower_boundary(view.nodes, memory, mean, sheddable)
            choices += chosen
            skips += skipped
        return Shedding(tuple(choices), memory, tuple(skips), {MEAN_USAGE: mean})

    def _smooth(self, usages: Mapping[str, float], memory: ThresholdMemory) -> tuple[ThresholdMemory, float]:
        weight = self.settings.history_weight
        smoothed = dict(memory.smoothed_usages)
        total = 0.0
        for node_id, usage in usages.items():
            former = smoothed.get(node_id)
            smoothed[node_id] = usage if former is None else former * weight + (1 - weight) * usage
            total += smoothed[node_id]
        return ThresholdMemory(smoothed), total / len(usages) if usages else 0.0

    def _below_lower_boundary(
        self, nodes: Mapping[str, NodeView], memory: ThresholdMemory, mean: float, sheddable: SheddableBundles
    ) -> tuple[list[ShedChoice], list[Skip]]:
        threshold = self.settings.threshold_percent / 100.0
        boundary = mean - threshold
        usages = memory.smoothed_usages
        idle = [usages[node_id] for node_id in nodes if usages[node_id] < boundary]
        busiest: NodeLoad | None = None
        greatest = boundary
        for node_id, node in nodes.items():
            if usages[node_id] > greatest and len(set(node.load.bundles)) > 1:
                busiest, greatest = node.load, usages[node_id]
        if not idle or busiest is None:
            return [], []
        target = throughput(busiest.traffic) * threshold * _LOWER_BOUNDARY_FACTOR
        evidence = (
            Evidence(SMOOTHED_USAGE, greatest, boundary),
            Evidence("least_smoothed_usage", min(idle), boundary),
        )
        return self._choose(busiest, target, sheddable, ShedReason.BELOW_LOWER_BOUNDARY, evidence)

    def _choose(
        self,
        node: NodeLoad,
        target: float,
        sheddable: SheddableBundles,
        reason: ShedReason,
        measured: tuple[Evidence, ...],
    ) -> tuple[list[ShedChoice], list[Skip]]:
        least = self.settings.min_throughput_mib_per_s * BYTES_PER_MIB
        evidence = (*measured, Evidence(_TARGET, target, least))
        bundle_count = len(set(node.bundles))
        if target < least:
            return [], [Skip(SkipReason.SMALL_TARGET, node.node_id, evidence=evidence)]
        if bundle_count == 1:
            return [], [Skip(SkipReason.SOLE_BUNDLE, node.node_id, evidence=evidence)]
        chosen = until_target(sheddable.of(node.bundles, throughput), target)
        if not chosen:
            return [], [Skip(SkipReason.NO_BUNDLES, node.node_id, evidence=evidence)]
        return [ShedChoice(node.node_id, each.bundle_id, reason, each.traffic, target, evidence) for each in chosen], []

"""Shedding between nodes that are paired by score, the busiest with the least busy (Pulsar's AvgShedder, PIP-364)."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.ieee import total_order
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.load.view import BundleHistory, LoadView
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, PERCENT, SHARE, THRESHOLD_PERCENT
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable
from controlplane.core.bundles.shedding.avg_shedder_plan import (
    AvgShedderMemory,
    PlannedNode,
    findable,
    plan_key,
    planned_node,
    remember,
)
from controlplane.core.bundles.shedding.contract import (
    Evidence,
    ShedChoice,
    Shedding,
    ShedReason,
    Skip,
    SkipReason,
    UnloadOutcome,
)
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, message_rate, throughput
from controlplane.core.values.ordered_map import OrderedMap

RULE_NAME: Final = "AvgShedder"


@dataclass(frozen=True, slots=True)
class AvgShedderSettings:
    """Settings of the rule. The defaults are Pulsar's, without its quirk. A score is a usage in percent.

    Attributes:
        low_difference: a pair whose scores differ by at least this counts a hit of the low threshold.
        high_difference: a pair whose scores differ by at least this counts a hit of the high threshold, too.
        low_hits: a node sheds when it or its partner has as many hits of the low threshold.
        high_hits: a node sheds when it or its partner has as many hits of the high threshold.
        min_messages_per_s: a message rate to be moved has to exceed this; otherwise throughputs count.
        min_throughput_bytes_per_s: a throughput to be moved has to exceed this.
        max_share: which share of the difference is moved in one cycle; Pulsar advises 0.5 for this rule.
        weights: weights of the resources in a score.
        plans_by_averages: a quirk of 4.2.4: the plan is kept under a bundle's averages and topics instead of its id.
            Bundles with equal ones share an entry, and the last writer decides where all of them go. Picks are planned
            too, and a planned node is taken although it is overloaded.
        overloaded_percent: a planned node with a greater usage is not taken, but one that is not overloaded (Pulsar
            after #26246; which usage it compares is assumed).
    """

    low_difference: float = knob("loadBalancerAvgShedderLowThreshold", 15, PERCENT, accepted=NOT_NEGATIVE)
    high_difference: float = knob("loadBalancerAvgShedderHighThreshold", 40, PERCENT, accepted=NOT_NEGATIVE)
    low_hits: int = knob("loadBalancerAvgShedderHitCountLowThreshold", 8, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    high_hits: int = knob("loadBalancerAvgShedderHitCountHighThreshold", 2, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    min_messages_per_s: float = knob("minUnloadMessage", 1_000, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    min_throughput_bytes_per_s: float = knob(
        "minUnloadMessageThroughput", 1_048_576, NOT_NEGATIVE, accepted=NOT_NEGATIVE
    )
    max_share: float = knob("maxUnloadPercentage", 0.2, SHARE, accepted=NOT_NEGATIVE)
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    plans_by_averages: bool = False
    overloaded_percent: float = knob(
        "loadBalancerBrokerOverloadedThresholdPercentage", 85, THRESHOLD_PERCENT, accepted=NOT_NEGATIVE
    )

    def __post_init__(self) -> None:
        """Refuse values with which the rule cannot calculate.

        Raises:
            ConfigurationError: a value is negative or not a number.
        """
        refuse_unusable(self)


class _Pair(NamedTuple):
    """Two nodes; the busier one sheds to the other."""

    idle: str
    busy: str


class _Hits:
    """The hit counts of one cycle, which it may change."""

    def __init__(self, memory: AvgShedderMemory) -> None:
        self.high = dict(memory.high_hits)
        self.low = dict(memory.low_hits)

    @staticmethod
    def add(counts: dict[str, int], pair: _Pair) -> None:
        """One more hit for both; a node paired with itself gets two."""
        for node_id in pair:
            counts[node_id] = counts.get(node_id, 0) + 1

    def clear(self, pair: _Pair) -> None:
        """Forget all hits of both."""
        for node_id in pair:
            self.high.pop(node_id, None)
            self.low.pop(node_id, None)

    def suffice(self, pair: _Pair, settings: AvgShedderSettings) -> bool:
        """Whether one of both has enough hits. A count that was looked at and is missing becomes 0, as in Pulsar."""
        return any(
            counts.setdefault(node_id, 0) >= needed
            for counts, needed in ((self.high, settings.high_hits), (self.low, settings.low_hits))
            for node_id in pair
        )


@dataclass(frozen=True, slots=True)
class AvgShedder:
    """The rule under its settings. It sheds bundles, and answers for which nodes it has planned them.

    Nodes are sorted by score. The busiest is paired with the least busy, the next with the next, and a node in the
    middle with itself. A pair whose scores have differed for long enough moves a share of its difference in traffic.
    """

    settings: AvgShedderSettings = field(default_factory=AvgShedderSettings)

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULE_NAME

    @property
    def first_memory(self) -> AvgShedderMemory:
        """No hits and no plan."""
        return AvgShedderMemory()

    def retain(self, memory: AvgShedderMemory, active: AbstractSet[str]) -> AvgShedderMemory:
        """The memory as it is: hits end with the difference, and a plan for a missing node is not followed."""
        del active
        return memory

    def after_unload(
        self, memory: AvgShedderMemory, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int
    ) -> AvgShedderMemory:
        """A plan by name ends with its attempt, whatever came of it; one by averages stays, as in 4.2.4."""
        del outcome, now_ms
        return memory if self.settings.plans_by_averages else memory.without_plan_for(choice.bundle_id)

    def scores(self, view: LoadView) -> dict[str, float]:
        """The score of each node, in the order of the view: its weighted usage in percent."""
        return {name: weighted_usage(node.load, self.settings.weights) * 100 for name, node in view.nodes.items()}

    def shed(self, view: LoadView, memory: AvgShedderMemory) -> Shedding[AvgShedderMemory]:
        """The result of one cycle. Each choice names the node that should take the bundle."""
        scores = self.scores(view)
        hits = _Hits(memory)
        plan = findable(memory.plan, view.bundles)
        pairs = self._pairs(scores, hits)
        if not pairs:
            return Shedding((), AvgShedderMemory({}, {}, plan), (Skip(SkipReason.HIT_COUNT),))
        sheddable = SheddableBundles(view)
        choices: list[ShedChoice] = []
        skips: list[Skip] = []
        for pair in pairs:
            difference = Evidence(
                "score_difference", scores[pair.busy] - scores[pair.idle], self.settings.low_difference
            )
            if not hits.suffice(pair, self.settings):
                skips.append(Skip(SkipReason.HIT_COUNT, pair.busy, evidence=(difference,)))
                continue
            hits.clear(pair)
            chosen, skipped = self._move(view, pair, sheddable, difference)
            choices += chosen
            skips += skipped
            for choice in chosen:
                averages = self._averages(choice.bundle_id, view)
                plan = remember(plan, choice.bundle_id, averages, pair.idle)
        return Shedding(tuple(choices), AvgShedderMemory(hits.high, hits.low, plan), tuple(skips))

    def best(
        self, bundle_id: str, candidates: Collection[str], view: LoadView, memory: AvgShedderMemory
    ) -> tuple[str, ...]:
        """The nodes that are equally good for a bundle, by name: the planned one alone, or those to pick from.

        A plan by id is not followed to an overloaded node: the bundle goes to one that is not, if there is one.
        """
        planned = self.planned(bundle_id, view, memory)
        by_name = tuple(sorted(candidates))
        if planned is None or planned.node_id not in candidates:
            return by_name
        if self.settings.plans_by_averages or not self._is_overloaded(planned.node_id, view):
            return (planned.node_id,)
        return tuple(each for each in by_name if not self._is_overloaded(each, view)) or by_name

    def _is_overloaded(self, node_id: str, view: LoadView) -> bool:
        """Whether the node's usage is above the threshold; without a report it is not."""
        node = view.nodes.get(node_id)
        if node is None:
            return False
        return weighted_usage(node.load, self.settings.weights) > self.settings.overloaded_percent / 100.0

    def planned(self, bundle_id: str, view: LoadView, memory: AvgShedderMemory) -> PlannedNode | None:
        """The plan for a bundle; None if there is none, or if it can no longer be found."""
        return planned_node(memory.plan, bundle_id, self._averages(bundle_id, view), view.bundles)

    def after_pick(self, bundle_id: str, node_id: str, view: LoadView, memory: AvgShedderMemory) -> AvgShedderMemory:
        """The memory after a node was picked for a bundle: by averages the pick is a plan, by id it is not."""
        if not self.settings.plans_by_averages:
            return memory
        averages, plan = self._averages(bundle_id, view), OrderedMap.of(memory.plan)
        key = plan_key(bundle_id, averages)
        if key in plan and planned_node(plan, bundle_id, averages, view.bundles) is None:
            plan = plan.drop([key])  # an entry that can no longer be found is not one to be overwritten
        return replace(memory, plan=remember(plan, bundle_id, averages, node_id))

    def _averages(self, bundle_id: str, view: LoadView) -> BundleHistory | None:
        """What a plan by averages keeps the bundle under; None in a plan by name."""
        if not self.settings.plans_by_averages:
            return None
        return view.bundles.get(bundle_id, BundleHistory(UNSEEN_BUNDLE))

    def _pairs(self, scores: Mapping[str, float], hits: _Hits) -> list[_Pair]:
        """The pairs whose scores differ enough; counts the hits of all."""
        settings = self.settings
        by_score = sorted(scores, key=lambda node_id: total_order(scores[node_id]))
        pairs: list[_Pair] = []
        for position in range((len(by_score) + 1) // 2):
            pair = _Pair(by_score[position], by_score[-1 - position])
            difference = scores[pair.busy] - scores[pair.idle]
            if difference < settings.low_difference:
                hits.clear(pair)
                continue
            pairs.append(pair)
            hits.add(hits.low, pair)
            if difference < settings.high_difference:
                for node_id in pair:
                    hits.high.pop(node_id, None)
            else:
                hits.add(hits.high, pair)
        return pairs

    def _move(
        self, view: LoadView, pair: _Pair, sheddable: SheddableBundles, difference: Evidence
    ) -> tuple[list[ShedChoice], list[Skip]]:
        settings = self.settings
        busy, idle = view.nodes[pair.busy].load, view.nodes[pair.idle].load
        rate = (message_rate(busy.traffic) - message_rate(idle.traffic)) * settings.max_share
        volume = (throughput(busy.traffic) - throughput(idle.traffic)) * settings.max_share
        by_rate = Evidence("target_messages_per_s", rate, settings.min_messages_per_s)
        by_volume = Evidence("target_bytes_per_s", volume, settings.min_throughput_bytes_per_s)
        if by_rate.measured > by_rate.limit:
            reason, measure, target = ShedReason.UNEVEN_MESSAGE_RATE, message_rate, by_rate
        elif by_volume.measured > by_volume.limit:
            reason, measure, target = ShedReason.UNEVEN_THROUGHPUT, throughput, by_volume
        else:
            return [], [Skip(SkipReason.SMALL_TARGET, pair.busy, evidence=(difference, by_rate, by_volume))]
        chosen: list[ShedChoice] = []
        evidence = (difference, target)
        remaining = target.measured
        for bundle in sheddable.of(busy.bundles, measure):
            if 0 < bundle.traffic <= remaining:
                remaining -= bundle.traffic
                chosen.append(
                    ShedChoice(
                        pair.busy, bundle.bundle_id, reason, bundle.traffic, target.measured, evidence, pair.idle
                    )
                )
        return chosen, [] if chosen else [Skip(SkipReason.NO_BUNDLES, pair.busy, evidence=evidence)]

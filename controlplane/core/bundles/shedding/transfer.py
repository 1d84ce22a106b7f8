"""Transfer of bundles from the nodes with the most load to those with the least (Pulsar's TransferShedder, PIP-220)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.load.ieee import divide
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, SHARE, THRESHOLD_PERCENT
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
from controlplane.core.bundles.shedding.transfer_pair import NodePair, PairOffload, PairRules, distinct
from controlplane.core.bundles.shedding.transfer_spread import (
    Spread,
    measure,
    overload,
    underload,
)
from controlplane.core.bundles.shedding.transfer_view import TransferView
from controlplane.core.values.ordered_map import OrderedMap

RULE_NAME: Final = "TransferShedder"
MEAN_LOAD: Final = "mean_load"
DEVIATION: Final = "load_deviation"
DEVIATION_AFTER: Final = "load_deviation_after"


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """Settings of the rule. The defaults are Pulsar's, without its quirks.

    Attributes:
        target_deviation: the standard deviation of the nodes' loads that the rule aims at; 1.0 means 100 percent.
        overloaded_percent: a node with more load, far above the mean, is overloaded.
        hit_count: bundles move when the condition has held in more cycles in a row than this.
        transfers: whether a bundle goes to a node of the rule's choice; otherwise the placement decides.
        max_pairs: greatest number of pairs of nodes that exchange bundles in one cycle.
        cool_down_s: no cycle before every node has reported a load sampled so long after it shed.
        load_lifetime_s: an older load does not count.
        sheds_bundles_with_policies: whether bundles with an isolation policy or an anti-affinity group may move.
        excluded_namespaces: namespaces whose bundles are not shed (PIP-380).
        debug_mode: counts with ``counts_swap_gain_in_debug_mode_only``. In Pulsar, debug logging switches it on too.
        counts_swap_gain_in_debug_mode_only: quirk D: throughput that comes back in a swap counts only in debug mode;
            otherwise the rule believes that it has offloaded more than it has.
        swaps_any_bundle: a quirk: bundles that come back in a swap may be owned by another node, be of an excluded
            namespace, or have moved recently.
        pairs_outdated_nodes: a quirk: a node whose load is outdated does not count in the mean, but is still paired.
    """

    target_deviation: float = knob("loadBalancerBrokerLoadTargetStd", 0.25, SHARE, accepted=NOT_NEGATIVE)
    overloaded_percent: float = knob(
        "loadBalancerBrokerOverloadedThresholdPercentage", 85, THRESHOLD_PERCENT, accepted=NOT_NEGATIVE
    )
    hit_count: int = knob("loadBalancerSheddingConditionHitCountThreshold", 3, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    transfers: bool = knob("loadBalancerTransferEnabled", default=True)
    max_pairs: int = knob("loadBalancerMaxNumberOfBrokerSheddingPerCycle", 3, ONE_OR_MORE, accepted=NOT_NEGATIVE)
    cool_down_s: int = knob("loadBalanceSheddingDelayInSeconds", 180, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    load_lifetime_s: int = knob("loadBalancerBrokerLoadDataTTLInSeconds", 1_800, POSITIVE, accepted=NOT_NEGATIVE)
    sheds_bundles_with_policies: bool = knob("loadBalancerSheddingBundlesWithPoliciesEnabled", default=False)
    excluded_namespaces: AbstractSet[str] = knob("loadBalancerSheddingExcludedNamespaces", frozenset())
    debug_mode: bool = knob("loadBalancerDebugModeEnabled", default=False)
    counts_swap_gain_in_debug_mode_only: bool = False
    swaps_any_bundle: bool = False
    pairs_outdated_nodes: bool = False

    def __post_init__(self) -> None:
        """Refuse values with which the rule cannot calculate.

        Raises:
            ConfigurationError: a number is negative or not a number.
        """
        refuse_unusable(self)

    @property
    def pair_rules(self) -> PairRules:
        """What the exchange of two nodes needs."""
        return PairRules(
            self.transfers,
            self.sheds_bundles_with_policies,
            self.excluded_namespaces,
            self.debug_mode or not self.counts_swap_gain_in_debug_mode_only,
            self.swaps_any_bundle,
        )


@dataclass(frozen=True, slots=True)
class TransferMemory:
    """What the rule remembers.

    Attributes:
        condition_hits: in how many cycles in a row the condition has held.
        unloaded_at_ms: when each node shed, until it has reported long enough after it.
    """

    condition_hits: int = 0
    unloaded_at_ms: Mapping[str, int] = field(default_factory=dict)

    def with_unloaded(self, node_id: str, at_ms: int) -> "TransferMemory":
        """The memory after a bundle was unloaded from a node."""
        return TransferMemory(self.condition_hits, OrderedMap.of(self.unloaded_at_ms).put([(node_id, at_ms)]))


@dataclass(frozen=True, slots=True)
class TransferShedder:
    """The rule under its settings."""

    settings: TransferSettings = field(default_factory=TransferSettings)

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULE_NAME

    @property
    def first_memory(self) -> TransferMemory:
        """No hits, and no node that shed."""
        return TransferMemory()

    def retain(self, memory: TransferMemory, active: AbstractSet[str]) -> TransferMemory:
        """The memory as it is: the cool-down of a node ends with its next load."""
        del active
        return memory

    def after_unload(
        self, memory: TransferMemory, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int
    ) -> TransferMemory:
        """A node that shed cools down: no cycle runs before it has reported a load without the bundle."""
        return memory.with_unloaded(choice.node_id, now_ms) if outcome is UnloadOutcome.UNLOADED else memory

    def shed(self, view: TransferView, memory: TransferMemory) -> Shedding[TransferMemory]:
        """The result of one cycle.

        ``figures`` has the mean and the deviation of the loads before and after, unless the loads are not known well
        enough. A skip without a node is the reason for which the whole cycle chose nothing.
        """
        settings = self.settings
        measured = measure(
            view,
            memory.unloaded_at_ms,
            lifetime_s=settings.load_lifetime_s,
            cool_down_s=settings.cool_down_s,
            pairs_outdated=settings.pairs_outdated_nodes,
        )
        unloaded = measured.unloaded_at_ms
        spread = measured.outcome
        if isinstance(spread, Skip):
            return Shedding((), TransferMemory(memory.condition_hits, unloaded), (spread,))
        cycle = _Cycle(settings, view, measured.by_load, spread)
        figures = {MEAN_LOAD: spread.mean, DEVIATION: spread.deviation, DEVIATION_AFTER: spread.deviation}
        hits = 0 if cycle.condition() is None else memory.condition_hits + 1
        if hits <= settings.hit_count:
            evidence = (Evidence("condition_hits", hits, settings.hit_count),)
            skip = Skip(SkipReason.HIT_COUNT, evidence=evidence)
            return Shedding((), TransferMemory(hits, unloaded), (skip,), figures)
        cycle.run()
        figures[DEVIATION_AFTER] = cycle.spread.deviation
        if cycle.choices:
            return Shedding(tuple(cycle.choices.values()), TransferMemory(0, unloaded), tuple(cycle.skips), figures)
        return Shedding((), TransferMemory(hits, unloaded), (*cycle.skips, Skip(cycle.main_skip())), figures)


class _Cycle:
    """One pass over the nodes from both ends: the most loaded are used up, the least loaded when they got something."""

    def __init__(
        self, settings: TransferSettings, view: TransferView, by_load: tuple[str, ...], spread: Spread
    ) -> None:
        self.spread = spread
        self.choices: dict[str, ShedChoice] = {}
        self.skips: list[Skip] = []
        self._settings = settings
        self._view = view
        self._by_load = by_load
        self._least, self._most = 0, len(by_load) - 1
        self._pairs = 0

    def condition(self) -> tuple[ShedReason, Evidence] | None:
        """Why the two nodes at the ends should exchange bundles; None if they should not."""
        least, most = (self._view.loads[self._by_load[end]] for end in (self._least, self._most))
        mean, target = self.spread.mean, self._settings.target_deviation
        if self.spread.deviation > target:
            return ShedReason.OVERLOADED, Evidence(DEVIATION, self.spread.deviation, target)
        too_little = underload(least, most, mean, target)
        if too_little is not None:
            return ShedReason.UNDERLOADED, too_little
        too_much = overload(most, mean, target, self._settings.overloaded_percent / 100.0)
        return None if too_much is None else (ShedReason.OVERLOADED, too_much)

    def run(self) -> None:
        """Exchange bundles between pairs of nodes until the loads are even enough."""
        while self._pairs < self._settings.max_pairs and self._least < self._most:
            why = self.condition()
            if why is None:
                return
            busy, idle = self._by_load[self._most], self._by_load[self._least]
            self._most -= 1
            reported = len(distinct(self._view.top_bundles.get(busy, ())))
            if reported <= 1:
                reason = SkipReason.SOLE_BUNDLE if reported else SkipReason.NO_LOAD
                self.skips.append(Skip(reason, busy, evidence=why[1:]))
                continue
            offload = NodePair(self._view, self._settings.pair_rules, busy, idle, self.choices.keys()).offload()
            self._choose(offload, *why)
            if offload.marked > 0:
                self._account(offload, busy, idle)
            else:
                self.skips.append(Skip(SkipReason.NO_BUNDLES, busy, evidence=why[1:]))

    def main_skip(self) -> SkipReason:
        """The reason for which the cycle chose nothing: missing loads before missing bundles before neither."""
        found = {skip.reason for skip in self.skips}
        if SkipReason.NO_LOAD in found:
            return SkipReason.NO_LOAD
        return SkipReason.NO_BUNDLES if found else SkipReason.HIT_COUNT

    def _choose(self, offload: PairOffload, reason: ShedReason, evidence: Evidence) -> None:
        for move in offload.moves:
            choice = ShedChoice(
                move.source,
                move.bundle.bundle_id,
                reason,
                move.bundle.bytes_per_s,
                offload.target,
                (evidence, Evidence("target_bytes_per_s", offload.marked - offload.gained, offload.target)),
                move.destination if self._settings.transfers else None,
            )
            self.choices[choice.bundle_id] = choice

    def _account(self, offload: PairOffload, busy: str, idle: str) -> None:
        most, least = self._view.loads[busy], self._view.loads[idle]
        amount = divide((offload.marked - offload.gained) * most.smoothed_usage, most.bytes_per_s)
        self.spread = self.spread.after_offload(most.smoothed_usage, least.smoothed_usage, amount)
        self._pairs += 1
        self._least += 1

"""Shedding by the busiest node if it is too far from the least busy one (Pulsar's UniformLoadShedder)."""

import math
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.ieee import GREATEST_INT32, divide, to_int32, wrap_int32
from controlplane.core.bundles.load.view import LoadView
from controlplane.core.bundles.settings.allowed import NOT_NEGATIVE, SHARE, UNLIMITED_OR_MORE
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
from controlplane.core.bundles.shedding.sheddable import SheddableBundles, message_rate, throughput

RULE_NAME: Final = "UniformLoadShedder"
_NEAR_ZERO: Final = 1e-6
UNLIMITED_BUNDLES: Final = -1


@dataclass(frozen=True, slots=True)
class UniformSettings:
    """Settings of the rule. The defaults are Pulsar's, without its quirk.

    Attributes:
        rate_difference_percent: greatest difference of two nodes' message rates, in percent of the smaller one; 0 or
            less switches this condition off.
        throughput_ratio: greatest ratio of two nodes' throughputs; 0 or less switches this condition off.
        min_messages_per_s: least message rate for which bundles are moved.
        min_throughput_bytes_per_s: least throughput for which bundles are moved.
        max_share: which share of the difference is moved in one cycle; 0.5 would make both nodes equal.
        max_bundles: greatest number of bundles in one cycle; -1 means no limit.
        counts_in_32_bits: a quirk: what is to be moved is a whole number of 32 bits. Fractions are dropped, more than
            2^31 - 1 is cut to it, and a subtraction can wrap around. The least traffic of a node is cut likewise.
    """

    rate_difference_percent: float = knob("loadBalancerMsgRateDifferenceShedderThreshold", 50.0, NOT_NEGATIVE)
    throughput_ratio: float = knob("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold", 4.0, NOT_NEGATIVE)
    min_messages_per_s: int = knob("minUnloadMessage", 1_000, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    min_throughput_bytes_per_s: int = knob("minUnloadMessageThroughput", 1_048_576, NOT_NEGATIVE, accepted=NOT_NEGATIVE)
    max_share: float = knob("maxUnloadPercentage", 0.2, SHARE, accepted=NOT_NEGATIVE)
    max_bundles: int = knob(
        "maxUnloadBundleNumPerShedding", UNLIMITED_BUNDLES, UNLIMITED_OR_MORE, accepted=UNLIMITED_OR_MORE
    )
    counts_in_32_bits: bool = False

    def __post_init__(self) -> None:
        """Refuse a share with which nothing would be moved, or which is no number.

        Raises:
            ConfigurationError: the share or a minimum is negative, or the number of bundles is below -1.
        """
        refuse_unusable(self)


class _Extremes(NamedTuple):
    """The greatest and the least traffic of a node, and the node with the greatest; empty if there is none."""

    busiest: str
    most: float
    least: float


def _extremes(traffic: Iterable[tuple[str, float]], greatest: float) -> _Extremes:
    """The extremes; the least traffic counts as ``greatest`` if it is more than that, or if there is no node."""
    busiest, most, least = "", -1.0, greatest
    for node_id, amount in traffic:
        if amount > most:
            busiest, most = node_id, amount
        least = min(least, amount)
    return _Extremes(busiest, most, 1.0 if -_NEAR_ZERO <= least <= _NEAR_ZERO else least)


@dataclass(frozen=True, slots=True)
class UniformLoadShedder:
    """The busiest node sheds a share of its difference to the least busy one; message rates count before throughputs.

    If the message rates differ too much, throughputs are not looked at, even if the rates lead to no choice. One node
    sheds in a cycle.
    """

    settings: UniformSettings = field(default_factory=UniformSettings)

    @property
    def name(self) -> str:
        """The rule's name."""
        return RULE_NAME

    @property
    def first_memory(self) -> None:
        """The rule remembers nothing."""
        return

    def retain(self, memory: None, active: AbstractSet[str]) -> None:
        """The rule remembers nothing."""

    def after_unload(self, memory: None, choice: ShedChoice, outcome: UnloadOutcome, now_ms: int) -> None:
        """The rule remembers nothing."""

    def shed(self, view: LoadView, memory: None) -> Shedding[None]:
        """The result of one cycle."""
        settings = self.settings
        loads = {node_id: node.load.traffic for node_id, node in view.nodes.items()}
        greatest = float(GREATEST_INT32) if settings.counts_in_32_bits else math.inf
        rates = _extremes(((node_id, message_rate(load)) for node_id, load in loads.items()), greatest)
        difference_percent = divide((rates.most - rates.least) * 100, rates.least)
        if 0 < settings.rate_difference_percent < difference_percent:
            evidence = Evidence("rate_difference_percent", difference_percent, settings.rate_difference_percent)
            return self._move(view, rates, message_rate, evidence)
        throughputs = _extremes(((node_id, throughput(load)) for node_id, load in loads.items()), greatest)
        ratio = divide(throughputs.most, throughputs.least)
        if 0 < settings.throughput_ratio < ratio:
            return self._move(
                view, throughputs, throughput, Evidence("throughput_ratio", ratio, settings.throughput_ratio)
            )
        return Shedding((), memory)

    def _move(
        self, view: LoadView, extremes: _Extremes, measure: Callable[[MessageLoad], float], measured: Evidence
    ) -> Shedding[None]:
        by_rate = measure is message_rate
        least = self.settings.min_messages_per_s if by_rate else self.settings.min_throughput_bytes_per_s
        node = view.nodes.get(extremes.busiest)
        if node is None:
            return Shedding((), None, (Skip(SkipReason.NO_LOAD, evidence=(measured,)),))
        target = (extremes.most - extremes.least) * self.settings.max_share
        if self.settings.counts_in_32_bits:
            target = to_int32(target)
        name = "target_messages_per_s" if by_rate else "target_bytes_per_s"
        evidence = (measured, Evidence(name, target, least))
        node_id, bundle_count = extremes.busiest, len(set(node.load.bundles))
        if bundle_count <= 1:
            skip_reason = SkipReason.SOLE_BUNDLE if bundle_count else SkipReason.NO_BUNDLES
            return Shedding((), None, (Skip(skip_reason, node_id, evidence=evidence),))
        if not target >= least:
            return Shedding((), None, (Skip(SkipReason.SMALL_TARGET, node_id, evidence=evidence),))
        choices: list[ShedChoice] = []
        remaining = target
        limited = self.settings.max_bundles != UNLIMITED_BUNDLES
        reason = ShedReason.UNEVEN_MESSAGE_RATE if by_rate else ShedReason.UNEVEN_THROUGHPUT
        for bundle in SheddableBundles(view).of(node.load.bundles, measure):
            if limited and len(choices) >= self.settings.max_bundles:
                break
            if bundle.traffic <= remaining:
                remaining = self._subtract(remaining, bundle.traffic)
                choices.append(ShedChoice(node_id, bundle.bundle_id, reason, bundle.traffic, target, evidence))
        skips = () if choices else (Skip(SkipReason.NO_BUNDLES, node_id, evidence=evidence),)
        return Shedding(tuple(choices), None, skips)

    def _subtract(self, remaining: float, traffic: float) -> float:
        if not self.settings.counts_in_32_bits:
            return remaining - traffic
        return wrap_int32(int(remaining) + to_int32(-traffic))

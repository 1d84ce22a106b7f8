"""Pulsar's four split algorithms, under their own names."""

import math
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.bundles.settings.allowed import FINITE, PERCENT, POSITIVE
from controlplane.core.bundles.settings.knobs import knob, refuse_unusable
from controlplane.core.bundles.splitting.contract import SplitPositions, SplitRequest
from controlplane.errors import ConfigurationError

_MIN_TOPICS: Final = 2
"""A bundle of one topic is not split by topics: the topic would stay whole in one of the parts."""


@dataclass(frozen=True, slots=True)
class RangeEquallyDivide:
    """Two halves of the range (Pulsar's RangeEquallyDivideBundleSplitAlgorithm)."""

    name: str = field(default="range_equally_divide", init=False)

    def choose(self, request: SplitRequest) -> SplitPositions:
        """The middle, rounded down; the lower bound itself if the range is too narrow."""
        lower, upper = request.bundle
        middle = lower + (upper - lower) // 2
        return SplitPositions((middle,), f"0x{middle:08x} is the middle of {request.bundle.name}")


@dataclass(frozen=True, slots=True)
class TopicCountEquallyDivide:
    """Two parts with an equal number of topics (Pulsar's TopicCountEquallyDivideBundleSplitAlgorithm)."""

    name: str = field(default="topic_count_equally_divide", init=False)

    def choose(self, request: SplitRequest) -> SplitPositions:
        """The middle between the two middle hashes. If they are neighbours or equal, that is the lower one."""
        if (refusal := _too_few_topics(request)) is not None:
            return refusal
        hashes = sorted(map(bundle_hash, request.topics))
        half = len(hashes) // 2
        position = hashes[half - 1] + (hashes[half] - hashes[half - 1]) // 2
        reason = f"0x{position:08x} lies between the hashes of topics {half} and {half + 1} of {len(hashes)}"
        return SplitPositions((position,), reason)


@dataclass(frozen=True, slots=True)
class SpecifiedPositionsDivide:
    """Positions that an operator asks for (Pulsar's SpecifiedPositionsBundleSplitAlgorithm)."""

    name: str = field(default="specified_positions_divide", init=False)

    def choose(self, request: SplitRequest) -> SplitPositions:
        """The requested positions inside the range, ascending. A repeated one stays, and is refused when splitting.

        Raises:
            ConfigurationError: no position is given.
        """
        if not request.positions:
            message = f"{self.name} splits {request.bundle.name} at given positions, and none is given"
            raise ConfigurationError(message)
        if not request.is_forced and (refusal := _too_few_topics(request)) is not None:
            return refusal
        lower, upper = request.bundle
        inside = tuple(each for each in sorted(request.positions) if lower < each < upper)
        return SplitPositions(
            inside, f"{len(inside)} of {len(request.positions)} given positions are inside {request.bundle.name}"
        )


@dataclass(frozen=True, slots=True)
class TrafficSplitSettings:
    """Settings of :class:`FlowOrQpsEquallyDivide`.

    Attributes:
        max_message_rate_per_s: greatest message rate of a part, in plus out.
        max_bandwidth_mib_per_s: greatest throughput of a part in MiB/s, in plus out.
        excess_threshold_percent: a bundle is split by traffic if its message rate or its throughput is above that of a
            part by at least so many percent.
        accepts_any_rate: whether a topic with a rate that is not a number, infinite or negative counts as any other, as
            in Pulsar; otherwise it counts as a topic without a load.
    """

    max_message_rate_per_s: float = knob("loadBalancerNamespaceBundleMaxMsgRate", 30_000, POSITIVE, accepted=FINITE)
    max_bandwidth_mib_per_s: float = knob(
        "loadBalancerNamespaceBundleMaxBandwidthMbytes", 100, POSITIVE, accepted=FINITE
    )
    excess_threshold_percent: float = knob("flowOrQpsDifferenceThresholdPercentage", 10, PERCENT, accepted=FINITE)
    accepts_any_rate: bool = False

    def __post_init__(self) -> None:
        """Refuse limits that no traffic can keep, and infinite ones."""
        refuse_unusable(self)


@dataclass(frozen=True, slots=True)
class FlowOrQpsEquallyDivide:
    """Parts with limited traffic, perhaps more than two (Pulsar's FlowOrQpsEquallyDivideBundleSplitAlgorithm)."""

    settings: TrafficSplitSettings = field(default_factory=TrafficSplitSettings)
    name: str = field(default="flow_or_qps_equally_divide", init=False)

    def choose(self, request: SplitRequest) -> SplitPositions:
        """A position before each topic, by ascending hash, that would bring the part below it over a limit.

        Topics without traffic do not count. Topics with equal hashes weigh as much as the last of them, each.
        """
        if (refusal := _too_few_topics(request)) is not None:
            return refusal
        rate_limit = self.settings.max_message_rate_per_s
        throughput_limit = self.settings.max_bandwidth_mib_per_s * BYTES_PER_MIB
        hashes, loads, rate, throughput = self._busy_topics(request)
        if len(loads) < _MIN_TOPICS:
            return SplitPositions((), f"{len(loads)} of {len(request.topics)} topics have traffic, fewer than 2")
        factor = 1 + self.settings.excess_threshold_percent / 100.0
        if rate < rate_limit * factor and throughput < throughput_limit * factor:
            return SplitPositions(
                (),
                f"{rate} messages/s and {throughput} bytes/s are below {rate_limit * factor} and "
                f"{throughput_limit * factor}",
            )
        positions = []
        below = hashes[0]
        part_rate, part_throughput = loads[below]
        for hashed in hashes[1:]:
            next_rate, next_throughput = loads[hashed]
            if part_rate + next_rate > rate_limit or part_throughput + next_throughput > throughput_limit:
                positions.append(below + (hashed - below) // 2 + 1)
                part_rate, part_throughput = next_rate, next_throughput
            else:
                part_rate += next_rate
                part_throughput += next_throughput
            below = hashed
        reason = (
            f"{rate} messages/s and {throughput} bytes/s in parts of at most {rate_limit} and {throughput_limit}, "
            "or of one topic"
        )
        return SplitPositions(tuple(positions), reason)

    def _busy_topics(self, request: SplitRequest) -> tuple[list[int], dict[int, tuple[float, float]], float, float]:
        """Ascending hashes of the topics with traffic, rate and throughput by hash, and the sums of both."""
        hashes = []
        loads: dict[int, tuple[float, float]] = {}
        total_rate = total_throughput = 0.0
        for topic in request.topics:
            load = request.topic_loads.get(topic)
            if load is None:
                continue
            rate, throughput = load.message_rate_per_s, load.throughput_bytes_per_s
            if rate <= 0 and throughput <= 0:
                continue
            if not self.settings.accepts_any_rate and not all(0 <= each < math.inf for each in (rate, throughput)):
                continue
            hashed = bundle_hash(topic)
            hashes.append(hashed)
            loads[hashed] = rate, throughput
            total_rate += rate
            total_throughput += throughput
        return sorted(hashes), loads, total_rate, total_throughput


def _too_few_topics(request: SplitRequest) -> SplitPositions | None:
    if len(request.topics) >= _MIN_TOPICS:
        return None
    return SplitPositions((), f"the bundle has {len(request.topics)} known topics, fewer than {_MIN_TOPICS}")

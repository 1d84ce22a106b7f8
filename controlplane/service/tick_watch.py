"""Reports partitions of ``heartbeats`` without ticks, where silence cannot be measured, and clocks that differ."""

from typing import Final

import structlog

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import Observations
from controlplane.ports import Clock
from controlplane.service.metrics import STANDS_AFTER_MS, ControllerMetrics

_LOOK_EVERY_MS: Final = 1_000
_LASTS_AFTER_MS: Final = 30_000
"""From then on partitions without ticks are an error; a broker's death and a restart of Kafka end earlier."""
_SPREAD_LIMIT_MS: Final = 1_000
"""The spread of the brokers' clocks beyond which it is reported."""

_log = structlog.get_logger(__name__)


class TickWatch:
    """Compares the last tick of each partition with earlier ones, on the monotonic clock."""

    def __init__(self, clock: Clock, metrics: ControllerMetrics) -> None:
        """Begin without knowledge of any partition."""
        self._clock = clock
        self._metrics = metrics
        self._looked_at_ms: int | None = None
        self._last_ticks: dict[int, tuple[int | None, int]] = {}
        self._standing: list[int] = []
        self._stands_since_ms: int | None = None
        self._is_lasting = False
        self._reports_spread = False

    def look(self, observations: Observations) -> None:
        """Note the last tick of each partition, at most once a second; log changes only."""
        now_ms = self._clock.monotonic_ms()
        if self._looked_at_ms is not None and now_ms - self._looked_at_ms < _LOOK_EVERY_MS:
            return
        self._looked_at_ms = now_ms
        known = sorted(place.partition for place in observations.positions if place.topic == HEARTBEATS)
        for partition in known:
            view = observations.partitions.get(partition)
            tick_ms = view.last_tick_ms if view else None
            if partition not in self._last_ticks or self._last_ticks[partition][0] != tick_ms:
                self._last_ticks[partition] = tick_ms, now_ms
        standing = [each for each in known if now_ms - self._last_ticks[each][1] >= STANDS_AFTER_MS]
        self._metrics.partitions_without_ticks.set(len(standing))
        self._look_at_clocks(observations, [each for each in known if self._last_ticks[each][1] == now_ms])
        self._report(standing, len(known), now_ms)

    def _report(self, standing: list[int], partitions: int, now_ms: int) -> None:
        """Log which partitions have no ticks when that changes, and once more as an error when it lasts."""
        since_ms = now_ms if self._stands_since_ms is None else self._stands_since_ms
        self._stands_since_ms = since_ms if standing else None
        is_lasting = bool(standing) and now_ms - since_ms >= _LASTS_AFTER_MS
        if (standing, is_lasting) == (self._standing, self._is_lasting):
            return
        self._standing, self._is_lasting = standing, is_lasting
        if not standing:
            _log.info("every partition gets ticks again", topic=HEARTBEATS)
            return
        say = _log.error if is_lasting else _log.warning
        say(
            "no partition gets ticks: no node is fenced for silence"
            if len(standing) == partitions
            else "some partitions get no ticks: nodes whose heartbeats go there are not fenced for silence",
            topic=HEARTBEATS,
            partitions=standing,
        )

    def _look_at_clocks(self, observations: Observations, ticking: list[int]) -> None:
        """Compare the last ticks of the partitions that have new ones: each has the clock of its leader's broker.

        A partition that is read late differs as well, by as much as it is behind.
        """
        views = [view for each in ticking if (view := observations.partitions.get(each)) is not None]
        last_ticks_ms = [view.last_tick_ms for view in views if view.last_tick_ms is not None]
        spread_ms = max(last_ticks_ms) - min(last_ticks_ms) if last_ticks_ms else 0
        self._metrics.clock_spread_ms.set(spread_ms)
        if (spread_ms > _SPREAD_LIMIT_MS) == self._reports_spread:
            return
        self._reports_spread = not self._reports_spread
        if self._reports_spread:
            _log.warning(
                "brokers' clocks differ, or a partition is read late, as after a broker's death: this fences no node, "
                "but times that are shown are wrong; if it lasts, set the brokers' clocks",
                topic=HEARTBEATS,
                spread_ms=spread_ms,
                limit_ms=_SPREAD_LIMIT_MS,
            )
        else:
            _log.info("brokers' clocks agree again", spread_ms=spread_ms)

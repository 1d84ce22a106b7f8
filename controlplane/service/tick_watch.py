"""Reports partitions of ``heartbeats`` without ticks: their log time stands still, so silence cannot be measured."""

from typing import Final

import structlog

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.observations import Observations
from controlplane.ports import Clock
from controlplane.service.metrics import STANDS_AFTER_MS, ControllerMetrics

_LOOK_EVERY_MS: Final = 1_000

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
        if standing == self._standing:
            return
        self._standing = standing
        if standing:
            _log.error(
                "some partitions get no ticks: nodes whose heartbeats go there are not fenced for silence",
                topic=HEARTBEATS,
                partitions=standing,
            )
        else:
            _log.info("every partition gets ticks again", topic=HEARTBEATS)

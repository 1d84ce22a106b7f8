"""Brokers' clocks that are ahead of the driver's: a record that such a broker dates tells nothing of what time it is.

Append times are brokers' clocks. Where a rule waits for a time, or goes by the newest one, a clock that is an hour
ahead for a moment would stop it for an hour, and one that is years ahead for good. So each such rule bounds append
times by the driver's clock, which is read by drivers alone.
"""

from collections.abc import Mapping
from typing import Final

import structlog
from prometheus_client import Gauge

CLOCK_ALLOWANCE_MS: Final = 60_000
"""By how much an append time may be ahead of the driver's clock: clocks that are kept differ by much less."""

_log = structlog.get_logger(__name__)


class BrokerClocks:
    """Tells when the records of a topic begin to be dated ahead of the driver's clock, and when that ends.

    Args:
        topic: the topic, without the cluster's prefix.
        gauge: gets by how much the newest records are ahead.
    """

    def __init__(self, topic: str, gauge: Gauge) -> None:
        self._topic = topic
        self._gauge = gauge
        self._ahead_ms: dict[int, int] = {}

    def see(self, newest_ms: Mapping[int, int], clock_ms: int) -> None:
        """Look at a batch. What it does not have of a partition is as it was.

        Args:
            newest_ms: the greatest append time of each partition in it.
            clock_ms: the driver's clock at its beginning.
        """
        before = self._partitions_ahead()
        self._ahead_ms |= {partition: max(0, time_ms - clock_ms) for partition, time_ms in newest_ms.items()}
        ahead_ms = max(self._ahead_ms.values(), default=0)
        self._gauge.set(ahead_ms)
        partitions = self._partitions_ahead()
        if partitions and not before:
            text = "records are dated ahead of this machine's clock: their times are not waited for"
            _log.warning(text, topic=self._topic, partitions=partitions, ahead_ms=ahead_ms)
        elif before and not partitions:
            _log.warning("records are dated ahead of this machine's clock no more", topic=self._topic)

    def _partitions_ahead(self) -> list[int]:
        return sorted(partition for partition, ahead_ms in self._ahead_ms.items() if ahead_ms > CLOCK_ALLOWANCE_MS)

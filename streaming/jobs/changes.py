"""The stream of changes: a thread, because what it does takes the driver a moment and executors nothing."""

import threading
import time
from typing import Final

from streaming.changes.follower import ChangesFollower
from streaming.config import PipelineConfig
from streaming.metrics import PipelineMetrics

CHANGES: Final = "changes"
"""The stream's name in metrics and logs."""


class ChangesStream:
    """Follows the table of decisions until it is stopped or fails; seen from outside it is as a query of Spark.

    Args:
        config: the pipeline's settings.
        metrics: counts decisions and the time that they took.
    """

    def __init__(self, config: PipelineConfig, metrics: PipelineMetrics) -> None:
        """Start the thread."""
        self._config = config
        self._metrics = metrics
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=CHANGES, daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        """Why it failed; None if it did not."""
        return self._error

    def stop(self) -> None:
        """Let it end after its present step."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:  # noqa: BLE001 - the pipeline asks for it, and decides what comes of it
            self._error = error

    def _follow(self) -> None:
        follower = ChangesFollower(self._config.warehouse_dir)
        interval_s = self._config.trigger_interval_ms / 1_000
        while not self._stop.is_set():
            if not self._take_step(follower):
                self._stop.wait(interval_s)

    def _take_step(self, follower: ChangesFollower) -> bool:
        """Whether there were decisions."""
        began_s, began_at_s = time.monotonic(), time.time()
        count = follower.step()
        if count:
            self._metrics.records.labels(CHANGES).inc(count)
            self._metrics.batch_seconds.labels(CHANGES).observe(time.monotonic() - began_s)
            self._metrics.last_batch_time.labels(CHANGES).set(began_at_s)
        return count > 0

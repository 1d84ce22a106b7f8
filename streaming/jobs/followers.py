"""Streams that follow a table: threads of the driver, which the pipeline treats as queries of Spark."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from streaming.metrics import PipelineMetrics

_CANCEL_INTERVAL_S = 0.2


class Step(NamedTuple):
    """What a step of a follower comes to.

    Attributes:
        record_count: how many records it has written.
        wait_s: how long to wait before the next one.
    """

    record_count: int
    wait_s: float


class FollowerStream:
    """Takes steps until it is stopped or fails.

    Args:
        name: the stream's name in metrics and logs.
        metrics: counts records and the time that they took.
        opened: opens the follower, in the thread; returns what takes its steps.
        cancel: ends what a step waits for, if a step may take long.
    """

    def __init__(
        self,
        name: str,
        metrics: PipelineMetrics,
        opened: Callable[[], Callable[[], Step]],
        cancel: Callable[[], None] | None = None,
    ) -> None:
        """Start the thread."""
        self._name = name
        self._metrics = metrics
        self._opened = opened
        self._cancel = cancel
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._newest: Step | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""
        return self._thread.is_alive()

    @property
    def lastProgress(self) -> Step | None:  # noqa: N802 - Spark's name
        """The newest step that it has completed; None: it has completed none."""
        return self._newest

    def exception(self) -> Exception | None:
        """Why it failed; None if it did not."""
        return self._error

    def stop(self) -> None:
        """Let it end after its present step, or in it if that can be cancelled: it may begin while this waits."""
        self._stop.set()
        if self._cancel is None:
            self._thread.join()
            return
        while self._thread.is_alive():
            self._cancel()
            self._thread.join(_CANCEL_INTERVAL_S)

    def _run(self) -> None:
        try:
            step = self._opened()
            while not self._stop.is_set():
                self._newest = self._take(step)
                self._stop.wait(self._newest.wait_s)
        except Exception as error:  # noqa: BLE001 - the pipeline asks for it, and decides what comes of it
            self._error = error

    def _take(self, step: Callable[[], Step]) -> Step:
        began_s, began_at_s = time.monotonic(), time.time()
        taken = step()
        if taken.record_count:
            self._metrics.records.labels(self._name).inc(taken.record_count)
            self._metrics.batch_seconds.labels(self._name).observe(time.monotonic() - began_s)
            self._metrics.last_batch_time.labels(self._name).set(began_at_s)
        return taken

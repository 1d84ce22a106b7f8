"""The stream of the history of loads: a step soon after the end of each window, as one task at a time.

What a step leaves of windows that have ended, the next one writes at once.
"""

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from streaming.config import PipelineConfig
from streaming.contracts.loads import BUNDLE_LOAD_HISTORY_TABLE
from streaming.jobs.followers import FollowerStream, Step
from streaming.load_history.follower import LoadHistoryFollower
from streaming.metrics import PipelineMetrics

LOAD_HISTORY: Final = BUNDLE_LOAD_HISTORY_TABLE.name
"""The stream's name in metrics and logs, and of its jobs."""
_SETTLED_MS: Final = 30_000
"""How long after the end of a window it is written: by then its reports are in ``load_reports`` as a rule."""


def start_load_history(session: SparkSession, config: PipelineConfig, metrics: PipelineMetrics) -> FollowerStream:
    """Follow the table of load reports."""
    window_ms = config.history_window_ms

    def opened() -> Callable[[], Step]:
        session.sparkContext.setJobGroup(LOAD_HISTORY, "windows of loads", interruptOnCancel=True)
        follower = LoadHistoryFollower(session, config.tables_dir, window_ms)

        def step() -> Step:
            count = follower.step(_now_ms() - _SETTLED_MS)
            return Step(count, wait_s=0.0 if follower.has_more else until_next_step_ms(_now_ms(), window_ms) / 1_000)

        return step

    return FollowerStream(
        LOAD_HISTORY,
        metrics,
        opened,
        cancel=lambda: session.sparkContext.cancelJobGroup(LOAD_HISTORY),
    )


def until_next_step_ms(now_ms: int, window_ms: int) -> int:
    """How long to wait until half a minute after the end of a window."""
    return window_ms - (now_ms - _SETTLED_MS) % window_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

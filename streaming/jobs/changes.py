"""The stream of changes: a thread, because what it does takes the driver a moment and executors nothing."""

from collections.abc import Callable
from typing import Final

from streaming.changes.follower import ChangesFollower
from streaming.config import PipelineConfig
from streaming.jobs.followers import FollowerStream, Step
from streaming.metrics import PipelineMetrics

CHANGES: Final = "changes"
"""The stream's name in metrics and logs."""


def start_changes(config: PipelineConfig, metrics: PipelineMetrics) -> FollowerStream:
    """Follow the table of decisions, one step after the other while there are decisions."""
    interval_s = config.trigger_interval_ms / 1_000

    def opened() -> Callable[[], Step]:
        follower = ChangesFollower(config.tables_dir)

        def step() -> Step:
            count = follower.step()
            return Step(count, wait_s=0.0 if count else interval_s)

        return step

    return FollowerStream(CHANGES, metrics, opened)

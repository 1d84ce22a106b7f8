"""Streams that fail and are started again; and failures after which they must not be."""

import traceback
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from controlplane.errors import (
    StopError,
    UserError,
)
from streaming.config import PipelineConfig
from streaming.jobs.failures import final_error, stopping_error, words_of
from streaming.metrics import PipelineMetrics

_log = structlog.get_logger(__name__)

_LONGEST_WAIT_S: Final = 30.0


class Running(Protocol):
    """A query of Spark, or what is seen as one from outside."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs."""

    @property
    def lastProgress(self) -> object | None:  # noqa: N802 - Spark's name
        """What the newest batch since its start came to, also one that found no records; None: none is complete."""

    def exception(self) -> Exception | None:
        """Why it failed."""

    def stop(self) -> None:
        """End it."""


class RestartedStream:
    """One stream, which is started again after a failure, after a wait that doubles each time.

    Spark 4.1 always fails once after a crash: it repeats the interrupted batch, commits it, and then fails on the
    metrics of its Kafka source (SPARK-55271). The next start continues after that batch.

    Failures are in a row until a start completes a batch, also one without records. Time does not end a row: a batch
    may run for long and fail each time.

    Args:
        name: its name in metrics and logs.
        starter: starts it where it was.
        config: the pipeline's settings.
        metrics: counts restarts.
    """

    def __init__(
        self, name: str, starter: Callable[[], Running], config: PipelineConfig, metrics: PipelineMetrics
    ) -> None:
        self.name = name
        self._starter = starter
        self._config = config
        self._restarts = metrics.stream_restarts.labels(name)
        self._query: Running | None = None
        self._failures = 0
        self._start_again_at_s: float | None = None
        log_file = config.spark.log_file
        self._more = "" if log_file is None else f"; Spark's own words are in {log_file}"

    def start(self) -> None:
        """Start it where it was; what its start raises is raised."""
        self._query = self._starter()
        self._start_again_at_s = None

    def stop(self) -> None:
        """Stop it if it runs. The next start goes on where it was."""
        if self._query is not None and self._query.isActive:
            self._query.stop()

    def attend(self, now_s: float) -> None:
        """Look whether it has failed, and start it again when it is time.

        Args:
            now_s: monotonic time.

        Raises:
            ControlPlaneError: another start would meet the same error, or it has failed too often in a row.
        """
        if self._start_again_at_s is not None:
            if now_s >= self._start_again_at_s:
                self._restarts.inc()
                try:
                    self.start()
                except (StopError, UserError):
                    raise
                except Exception as error:  # noqa: BLE001 - what it opens may be away; it counts as a failure
                    self._wait(_text_of(error), now_s)
        elif self._query is not None and not self._query.isActive:
            if self._query.lastProgress is not None:
                self._failures = 0
            reason = self._query.exception()
            self._wait("it ended without an error" if reason is None else _text_of(reason), now_s)

    def _wait(self, failure: str, now_s: float) -> None:
        stopping = stopping_error(failure, self._config.kafka, f"what the stream of {self.name} reads")
        if stopping is not None:
            raise stopping
        sentence = words_of(failure, self._config)
        self._failures += 1
        if self._failures > self._config.restart_limit:
            message = f"the stream of {self.name} failed {self._failures} times in a row, last with: {sentence}"
            raise final_error(message + self._more, failure)
        wait_s = min(2.0 ** (self._failures - 1), _LONGEST_WAIT_S)
        self._start_again_at_s = now_s + wait_s
        _log.warning("stream failed and is started again", stream=self.name, wait_s=wait_s, failure=sentence)


def _text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()

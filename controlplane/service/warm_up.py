"""Lets a controller that starts read the log and learn the brokers' time before it reads inputs.

Silence is measured in the brokers' time, which this machine's clock may be far from. So the controller first writes a
tick to each partition of ``heartbeats``: the append times of these are the brokers' time, partition by partition.
"""

from collections.abc import Callable
from typing import Final

import structlog

from controlplane.config import HEARTBEATS
from controlplane.errors import RetryableError
from controlplane.ports import Signal
from controlplane.service.components import ControllerComponents
from controlplane.service.ticker import Ticker

_POLL_MS: Final = 100
_STRAGGLERS_MS: Final = 2_000
"""How long the ticks of further partitions are waited for after the first. A partition without a leader has none."""
_TELL_AFTER_MS: Final = 10_000

_log = structlog.get_logger(__name__)


class WarmUp:
    """One start of a controller; :meth:`run` is called once."""

    def __init__(self, components: ControllerComponents, ticker: Ticker) -> None:
        """Set up without a request; the ticker is started by :meth:`run`."""
        self._components = components
        self._ticker = ticker
        self._began_at_ms = 0
        self._first_tick_at_ms: int | None = None
        self._has_told = False

    def run(self, stop: Signal) -> None:
        """Fold the log up to its end, learn the brokers' time, then begin to read the inputs; return early at ``stop``.

        Writers that have nothing to write yet are served meanwhile, so that their connections and logins live. Ticks
        begin only when the log is read, because a controller that ticks counts as one that could take over.

        Raises:
            StopError: the log is damaged or of another cluster.
            ConfigurationError: Kafka refuses this client's login or a request.
        """
        self._repeat(self._fold_log, "the log", stop)
        self._ticker.start()
        self._began_at_ms = self._components.clock.monotonic_ms()
        self._repeat(self._begin_inputs, "ticks and inputs", stop)

    def _repeat(self, step: Callable[[], bool], what: str, stop: Signal) -> None:
        """Take a step until it answers that it was the last one, and serve an idle writer before each."""
        is_done = False
        while not is_done and not stop.is_set():
            self._components.dead_letters.listen()
            try:
                is_done = step()
            except RetryableError as error:
                _log.warning(f"waiting for {what}", error=str(error))
                stop.wait(1)

    def _fold_log(self) -> bool:
        self._ticker.serve_idle()
        return self._components.follower.poll(_POLL_MS)

    def _begin_inputs(self) -> bool:
        times_ms, is_whole = self._ticker.broker_times_ms()
        now_ms = self._components.clock.monotonic_ms()
        if times_ms and self._first_tick_at_ms is None:
            self._first_tick_at_ms = now_ms
        waited_ms = 0 if self._first_tick_at_ms is None else now_ms - self._first_tick_at_ms
        if not is_whole and waited_ms < _STRAGGLERS_MS:
            self._tell(now_ms - self._began_at_ms)
            self._components.follower.poll(_POLL_MS)
            return False
        self._components.input_reader.start(self._components.follower.state, times_ms)
        return True

    def _tell(self, waited_ms: int) -> None:
        if not self._has_told and waited_ms >= _TELL_AFTER_MS:
            self._has_told = True
            _log.warning(
                "Kafka has acknowledged no tick yet, which tells the brokers' time: inputs are read when it has",
                topic=HEARTBEATS,
                waited_ms=waited_ms,
            )

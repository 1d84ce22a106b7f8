"""The controller's loop: follow and observe always; lead when the lease is ours, until lease or Kafka say stop.

All effects are commits and commits are fenced by Kafka, so a wrong belief about the lease costs time, never safety.
"""

import random
import threading
from typing import Final

import structlog

from controlplane.core.identifiers import Term
from controlplane.core.membership import NodeStatus
from controlplane.core.state import State
from controlplane.errors import FencedError, RetryableError
from controlplane.service.leading import Leadership, Standing
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.takeover import UNRESOLVED_LIMIT_MS, Parts, require_slot_policy, take_over
from controlplane.service.ticker import Ticker

_POLL_MS: Final = 20
_AUDIT_INTERVAL_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class Controller:
    """One controller process's work. :meth:`run` is its main thread."""

    def __init__(self, parts: Parts, keeper: LeaseKeeper | None, ticker: Ticker, random_source: random.Random) -> None:
        """``keeper`` is None for an observer, which follows and never stands."""
        self._parts = parts
        self._keeper = keeper
        self._ticker = ticker
        self._random = random_source
        self._leadership: Leadership | None = None
        self._unresolved_since_ms: int | None = None
        self._audited_at_ms = 0
        self._shown: State | None = None

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; a leader gives its lease back so that another can take over at once.

        Raises:
            StopError: going on would do harm; the message says what to look at.
            ConfigurationError: the slot policy refuses the options that the log gives it.
        """
        parts = self._parts
        try:
            self._warm_up(stop)
            self._ticker.start()
            if self._keeper is not None:
                self._keeper.start()
            while not stop.is_set():
                self._step(stop)
        finally:
            self._step_down("shutdown", None)
            if self._keeper is not None:
                self._keeper.stop()
            self._ticker.stop()
            parts.intake.close()
            parts.follower.close()

    def _warm_up(self, stop: threading.Event) -> None:
        """Fold the log to its end, then begin to observe where it stops."""
        at_end = False
        while not stop.is_set():
            try:
                at_end = at_end or self._parts.follower.poll(100)
                if at_end:
                    self._parts.intake.start(self._parts.follower.state)
                    return
            except RetryableError as error:
                _log.warning("waiting for the log", error=str(error))
                stop.wait(1)

    def _step(self, stop: threading.Event) -> None:
        try:
            if self._leadership is None:
                self._follow()
            else:
                self._lead(self._leadership)
        except FencedError as error:
            _log.warning("fenced", error=str(error))
            self._step_down("fenced", self._random_wait_ms())
        except RetryableError as error:
            _log.warning("retrying", error=str(error))
            self._step_down("unreachable", self._random_wait_ms())
            stop.wait(0.2)

    def _follow(self) -> None:
        cut_off = self._is_cut_off()
        parts = self._parts
        parts.follower.poll(0)
        parts.intake.poll(_POLL_MS)
        parts.intake.settle(parts.follower.state)
        self._show(parts.follower.state, leading=False)
        if self._keeper is None:
            return
        # Before it would fence a leader that can decide: who cannot take over is no standby, and had better say so.
        require_slot_policy(parts, parts.follower.state)
        term = self._keeper.term
        if term is not None and cut_off:
            _log.warning("cut off from Kafka, leaving the lease to others", term=term)
            self._keeper.resign(self._random_wait_ms())
        elif term is not None:
            self._take_over(self._keeper, term)

    def _take_over(self, keeper: LeaseKeeper, term: Term) -> None:
        began_at_ms = self._parts.clock.monotonic_ms()
        _log.info("taking over", term=term)
        self._leadership = take_over(self._parts, keeper, term)
        if self._leadership is not None:
            elapsed_ms = self._parts.clock.monotonic_ms() - began_at_ms
            _log.info("leading", term=term, seq=self._leadership.state.seq, elapsed_ms=elapsed_ms)
            structlog.contextvars.bind_contextvars(term=term)
        elif keeper.term == term:
            keeper.resign(self._random_wait_ms())

    def _lead(self, leadership: Leadership) -> None:
        if self._keeper is None or self._keeper.term != leadership.term:
            self._step_down("lease lost", None)
            return
        if self._is_cut_off() and self._unresolved_since_ms is None:
            self._step_down("cut off from Kafka", self._random_wait_ms())
            return
        self._parts.intake.poll(_POLL_MS)
        standing = leadership.step()
        self._show(leadership.state, leading=True)
        match standing:
            case Standing.LEADS:
                self._unresolved_since_ms = None
                self._audit()
            case Standing.FENCED:
                self._step_down("fenced", self._random_wait_ms())
            case Standing.UNRESOLVED:
                self._wait_for_answer()

    def _is_cut_off(self) -> bool:
        """Whether Kafka has acknowledged no tick of ours for a lease duration; raises what ended the ticker, if any."""
        return self._ticker.silent_for_ms() > self._parts.config.lease.duration_ms

    def _wait_for_answer(self) -> None:
        now_ms = self._parts.clock.monotonic_ms()
        if self._unresolved_since_ms is None:
            self._unresolved_since_ms = now_ms
        elif now_ms - self._unresolved_since_ms > UNRESOLVED_LIMIT_MS:
            self._step_down("commit without an answer", self._random_wait_ms())

    def _audit(self) -> None:
        """Read our own decisions back: a topic that was recreated under us must not be led on in silence."""
        now_ms = self._parts.clock.monotonic_ms()
        if now_ms - self._audited_at_ms >= _AUDIT_INTERVAL_MS:
            self._audited_at_ms = now_ms
            self._parts.follower.poll(0)

    def _step_down(self, reason: str, wait_ms: int | None) -> None:
        """Stop leading and discard what is uncommitted; with ``wait_ms`` also give the lease back and wait."""
        leadership, self._leadership = self._leadership, None
        self._unresolved_since_ms = None
        if leadership is not None:
            _log.warning("stepping down", reason=reason, term=leadership.term)
            structlog.contextvars.unbind_contextvars("term")
            self._parts.metrics.steps_down.labels(reason).inc()
            self._parts.metrics.leading.set(0)
            leadership.writer.close()
        if wait_ms is not None and self._keeper is not None and self._keeper.term is not None:
            self._keeper.resign(wait_ms)

    def _random_wait_ms(self) -> int:
        """Different for each controller, so that two that failed together do not meet again."""
        duration_ms = self._parts.config.lease.duration_ms
        return self._random.randrange(duration_ms // 4, duration_ms)

    def _show(self, state: State, *, leading: bool) -> None:
        metrics = self._parts.metrics
        metrics.leading.set(1 if leading else 0)
        now_ms = self._parts.intake.observations.now_ms
        if now_ms is not None:
            metrics.lag_ms.set(self._parts.clock.wall_ms() - now_ms)
        if state is self._shown:
            return
        self._shown = state
        metrics.term.set(state.term)
        metrics.epoch.set(state.epoch)
        metrics.seq.set(state.seq)
        metrics.evictions_frozen.set(1 if state.evictions_frozen else 0)
        metrics.paused.set(1 if state.paused else 0)
        for status in NodeStatus:
            metrics.nodes.labels(status.value).set(sum(1 for node in state.nodes.values() if node.status is status))

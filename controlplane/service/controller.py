"""Drives the controller's machine: performs its actions, and brings their answers back as events.

The machine is :mod:`controlplane.core.election.leading`, its table :mod:`controlplane.core.election.steps`.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import structlog

from controlplane.core.election.backoff import PAUSE_MS, Absence, BackOff
from controlplane.core.election.leading import NO_LEASE, Hold, Leading, LeadingEvent, LeaseChecked, LogRead, Looked
from controlplane.core.election.steps import REQUESTED, Action, Step, Trigger
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeStatus
from controlplane.errors import FencedError, InvariantViolationError, RetryableError
from controlplane.ports import CommitOutcome, Signal
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.parts import Parts
from controlplane.service.takeover import TakeOver, read_log, require_slot_policy
from controlplane.service.tick_watch import TickWatch
from controlplane.service.ticker import Ticker

_POLL_MS: Final = 50
_ANSWERS: Final = {
    CommitOutcome.COMMITTED: Trigger.COMMITTED,
    CommitOutcome.ABORTED: Trigger.ABORTED,
    CommitOutcome.FENCED: Trigger.FENCED,
    CommitOutcome.UNKNOWN: Trigger.UNANSWERED,
}

_Performers: TypeAlias = Mapping[Action, Callable[[], LeadingEvent | None]]

_log = structlog.get_logger(__name__)


class Controller:
    """One controller process's work. :meth:`run` is its main thread."""

    def __init__(
        self,
        parts: Parts,
        machine: Leading,
        keeper: LeaseKeeper | None,
        ticker: Ticker,
        random_source: random.Random,
    ) -> None:
        """``keeper`` is None for an observer, which follows and never stands for election."""
        self._parts = parts
        self._keeper = keeper
        self._ticker = ticker
        self._random = random_source
        self._tick_watch = TickWatch(parts.clock, parts.metrics)
        self._machine = machine
        self._attempt: TakeOver | None = None
        self._began_at_ms = 0
        self._looked_at_ms = 0
        self._shown: State | None = None

    @property
    def step(self) -> Step:
        """Where this controller stands now."""
        return self._machine.state.step

    def run(self, stop: Signal) -> None:
        """Work until ``stop`` is set; a leader gives its lease back so that another can take over at once.

        Raises:
            StopError: going on would do harm; the message says what to look at.
            ConfigurationError: the slot policy refuses the options that the log gives it, Kafka refuses this client's
                login or request, or Redis does with the first one.
        """
        performers = self._performers(stop)
        try:
            self._warm_up(stop)
            self._ticker.start()
            self._parts.snapshots.start()
            if self._keeper is not None:
                self._keeper.start()
            event: LeadingEvent = Trigger.DONE
            while not stop.is_set():
                event = self._react(event, self._hold(), performers)
        finally:
            # Without a look at the keeper, which gives the lease back when it is stopped and may be what has failed.
            self._react(Trigger.SHUT_DOWN if stop.is_set() else Trigger.FAILED, NO_LEASE, performers)
            if self._keeper is not None:
                self._keeper.stop()
            self._ticker.stop()
            self._parts.snapshots.stop()
            self._parts.intake.close()
            self._parts.follower.close()

    def _warm_up(self, stop: Signal) -> None:
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

    def _react(self, event: LeadingEvent, hold: Hold, performers: _Performers) -> LeadingEvent:
        """Perform what the machine answers to an event; returns the answer of the last action."""
        now_ms, draw = self._parts.clock.monotonic_ms(), self._random.random()
        answer: LeadingEvent | None = None
        try:
            for action in self._machine.on_event(now_ms, event, hold, draw).actions:
                if isinstance(action, BackOff):
                    self._back_off(action)
                else:
                    answer = performers[action]()
        except FencedError as error:
            _log.warning("fenced", error=str(error))
            return Trigger.FENCED
        except RetryableError as error:
            _log.warning("retrying", error=str(error))
            return Trigger.UNREACHABLE
        return Trigger.DONE if answer is None else answer

    def _performers(self, stop: Signal) -> _Performers:
        return {
            Action.FOLLOW: self._follow,
            Action.CONFIRM_LEASE: self._confirm_lease,
            Action.READ_AHEAD: self._read_ahead,
            Action.OPEN_WRITER: self._open_writer,
            Action.READ_LOG: self._read_log,
            Action.RAISE_FLOOR: self._raise_floor,
            Action.CATCH_UP: self._catch_up,
            Action.OPEN_TERM: self._open_term,
            Action.ANNOUNCE: self._announce,
            Action.OBSERVE: self._observe,
            Action.DECIDE: self._decide,
            Action.ASK_FOR_OUTCOME: self._ask_for_outcome,
            Action.READ_BACK: self._read_back,
            Action.DISCARD: self._discard,
            Action.PAUSE: partial(_pause, stop),
        }

    def _hold(self) -> Hold:
        """What the keeper knows of the lease; raises what ended the keeper, if anything did."""
        return NO_LEASE if self._keeper is None else self._keeper.hold

    @property
    def _take_over(self) -> TakeOver:
        if self._attempt is None:
            raise InvariantViolationError(f"a controller that is {self.step.value} has opened no writer")
        return self._attempt

    def _follow(self) -> LeadingEvent:
        parts = self._parts
        parts.dead_letters.listen()
        try:
            parts.follower.poll(0)
        finally:
            # Also while the log cannot be read: an unpolled client keeps its broker's reports in memory.
            parts.intake.poll(_POLL_MS)
        parts.intake.follow_partitions(parts.follower.state)
        parts.intake.settle(parts.follower.state)
        self._show(parts.follower.state, leading=False)
        if self._keeper is not None:
            # Before it fences a leader that can decide: a controller that could not lead must end, and not stand by.
            require_slot_policy(parts, parts.follower.state)
        return self._looked()

    def _looked(self) -> Looked:
        """What was heard of Kafka by now; raises what ended the ticker, if anything did."""
        now_ms = self._parts.clock.monotonic_ms()
        turn_ms, self._looked_at_ms = now_ms - self._looked_at_ms, now_ms
        self._ticker.cover(self._parts.intake.known_partitions)
        return Looked(self._ticker.silent_for_ms(), self._parts.intake.deaf_for_ms(), turn_ms)

    def _confirm_lease(self) -> LeadingEvent:
        keeper, term = self._keeper, self._machine.state.term
        if keeper is None or term is None:
            raise InvariantViolationError("an observer has no lease to confirm")
        return LeaseChecked(keeper.confirm(term))

    def _read_ahead(self) -> LeadingEvent:
        self._began_at_ms = self._parts.clock.monotonic_ms()
        _log.info("taking over", term=self._machine.state.term)
        return self._read_log()

    def _open_writer(self) -> None:
        term = self._machine.state.term
        if term is None:
            raise InvariantViolationError("a controller without a term must not open a writer, which fences others")
        self._attempt = TakeOver(self._parts, term)
        self._attempt.open_writer()

    def _read_log(self) -> LeadingEvent:
        return LogRead(read_log(self._parts))

    def _raise_floor(self) -> None:
        log_term = self._parts.follower.state.term
        _log.warning("the log holds this term or a higher one", log_term=log_term)
        if self._keeper is not None:
            self._keeper.raise_floor(log_term)

    def _catch_up(self) -> None:
        self._take_over.catch_up()

    def _open_term(self) -> LeadingEvent:
        return _ANSWERS[self._take_over.open_term()]

    def _announce(self) -> None:
        leadership = self._take_over.leadership
        self._looked_at_ms = self._parts.clock.monotonic_ms()
        elapsed_ms = self._looked_at_ms - self._began_at_ms
        _log.info("leading", term=leadership.term, seq=leadership.state.seq, elapsed_ms=elapsed_ms)
        structlog.contextvars.bind_contextvars(term=leadership.term)
        self._take_over.remember_log_id()
        self._show(leadership.state, leading=True)

    def _observe(self) -> LeadingEvent:
        self._parts.intake.poll(_POLL_MS)
        return self._looked()

    def _decide(self) -> LeadingEvent:
        leadership = self._take_over.leadership
        outcome = leadership.decide()
        self._show(leadership.state, leading=True)
        return Trigger.NOTHING_TO_COMMIT if outcome is None else self._answer(outcome)

    def _ask_for_outcome(self) -> LeadingEvent:
        return self._answer(self._take_over.leadership.resolve())

    def _answer(self, outcome: CommitOutcome) -> Trigger:
        resigned = outcome is CommitOutcome.COMMITTED and self._take_over.leadership.has_resigned
        return Trigger.RESIGNED if resigned else _ANSWERS[outcome]

    def _read_back(self) -> None:
        """A snapshot may be taken of what was read back."""
        self._take_over.watch_table()
        if self._take_over.read_back():
            self._parts.snapshots.look(self._parts.follower.point)

    def _discard(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if attempt.leads:
            reason = self._machine.last_trigger
            tell = _log.info if reason in REQUESTED else _log.warning
            tell("stepping down", reason=reason.value, term=attempt.leadership.term)
            structlog.contextvars.unbind_contextvars("term")
            self._parts.metrics.steps_down.labels(reason.value).inc()
            self._parts.metrics.leading.set(0)
        attempt.close()

    def _back_off(self, back_off: BackOff) -> None:
        if self._keeper is None:
            return
        if back_off.reason is Absence.FAILED:
            failures, wait_ms = back_off.failures_in_a_row, back_off.wait_ms
            _log.warning("no take-over, letting others try", failures=failures, wait_ms=wait_ms)
        self._keeper.give_back(back_off.wait_ms)

    def _show(self, state: State, *, leading: bool) -> None:
        metrics = self._parts.metrics
        metrics.leading.set(1 if leading else 0)
        self._tick_watch.look(self._parts.intake.observations)
        now_ms = self._parts.intake.observations.now_ms
        if now_ms is not None:
            metrics.lag_ms.set(self._parts.clock.wall_ms() - now_ms)
        if state is self._shown:
            return
        self._shown = state
        metrics.term.set(state.term)
        metrics.epoch.set(state.epoch)
        metrics.seq.set(state.seq)
        metrics.evictions_frozen.set(1 if state.membership.evictions_frozen else 0)
        metrics.paused.set(1 if state.slots.paused else 0)
        for status in NodeStatus:
            metrics.nodes.labels(status.value).set(
                sum(1 for node in state.membership.nodes.values() if node.status is status)
            )


def _pause(stop: Signal) -> None:
    stop.wait(PAUSE_MS / 1_000)

"""Drives the controller's machine: performs what it wants done, and tells it what came of that.

What follows what is the table in :mod:`controlplane.core.election.leading`; nothing here decides about it.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

import structlog

from controlplane.core.election.backoff import PAUSE_MS, Absence, absence_ms
from controlplane.core.election.leading import (
    Action,
    Leading,
    LeadingEvent,
    LeaseChecked,
    LogRead,
    Looked,
    Step,
    Trigger,
)
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

_HANDED_OVER: Final = "lease handed over"
"""Why a leader has lost its lease if it gave it back for a preferred controller."""
_STOOD_STILL: Final = "stood still"
"""Why a leader has heard nothing of Kafka if it did not listen: it was suspended, or its machine was."""
_FAILED: Final = "failed"
"""Why a leader is shut down that nobody has asked to end: an error ends it, which is told where it is caught."""
_WISHED: Final = frozenset({_HANDED_OVER, Trigger.RESIGNED.value, Trigger.SHUT_DOWN.value})
"""The reasons that somebody has asked for, which warn of nothing."""

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
        """``keeper`` is None for an observer, which follows and never stands."""
        self._parts = parts
        self._keeper = keeper
        self._ticker = ticker
        self._random = random_source
        self._tick_watch = TickWatch(parts.clock, parts.metrics)
        self._machine = machine
        self._attempt: TakeOver | None = None
        self._began_at_ms = 0
        self._looked_at_ms = 0
        self._turn_ms = 0
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
                event = self._react(event, performers)
        finally:
            self._react(Trigger.SHUT_DOWN, performers)
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

    def _react(self, event: LeadingEvent, performers: _Performers) -> LeadingEvent:
        """Do what the machine wants done after an event; returns what the last of it brought."""
        answer: LeadingEvent | None = None
        try:
            for action in self._machine.on_event(self._parts.clock.monotonic_ms(), event).actions:
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
            Action.DISCARD: partial(self._discard, stop),
            Action.GIVE_LEASE_BACK: partial(self._stay_away, Absence.FALLEN),
            Action.LET_OTHERS_TRY: partial(self._stay_away, Absence.FAILED),
            Action.STAND_ASIDE: partial(self._stay_away, Absence.CUT_OFF),
            Action.HAND_OVER: partial(self._stay_away, Absence.RESIGNED),
            Action.PAUSE: partial(_pause, stop),
        }

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
            # Also while the log cannot be read: what this client has to say of its broker would gather.
            parts.intake.poll(_POLL_MS)
        parts.intake.follow_partitions(parts.follower.state)
        parts.intake.settle(parts.follower.state)
        self._show(parts.follower.state, leading=False)
        if self._keeper is not None:
            # Before it would fence a leader that can decide: who cannot take over is no standby, and had better say so.
            require_slot_policy(parts, parts.follower.state)
        return self._looked()

    def _looked(self) -> Looked:
        """What the lease and Kafka say by now; raises what ended the keeper or the ticker, if anything did."""
        now_ms = self._parts.clock.monotonic_ms()
        self._turn_ms, self._looked_at_ms = now_ms - self._looked_at_ms, now_ms
        self._ticker.cover(self._parts.intake.known_partitions)
        held_term = None if self._keeper is None else self._keeper.term
        return Looked(held_term, self._ticker.silent_for_ms(), self._parts.intake.deaf_for_ms())

    def _confirm_lease(self) -> LeadingEvent:
        keeper, term = self._keeper, self._machine.state.term
        if keeper is None or term is None:
            raise InvariantViolationError("an observer has no lease to confirm")
        return LeaseChecked(keeper.confirm(term), keeper.term)

    def _read_ahead(self) -> LeadingEvent:
        self._began_at_ms = self._parts.clock.monotonic_ms()
        _log.info("taking over", term=self._machine.state.term)
        return self._read_log()

    def _open_writer(self) -> None:
        term = self._machine.state.term
        if term is None:
            raise InvariantViolationError("a controller without a term must not fence anybody")
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
        """What was read back is also what a snapshot may be taken of."""
        self._take_over.watch_table()
        if self._take_over.read_back():
            self._parts.snapshots.look(self._parts.follower.point)

    def _discard(self, stop: Signal) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if attempt.leads:
            reason = self._reason_to_step_down(stop)
            tell = _log.info if reason in _WISHED else _log.warning
            tell("stepping down", reason=reason, term=attempt.leadership.term)
            structlog.contextvars.unbind_contextvars("term")
            self._parts.metrics.steps_down.labels(reason).inc()
            self._parts.metrics.leading.set(0)
        attempt.close()

    def _reason_to_step_down(self, stop: Signal) -> str:
        """As the machine has it, but for what only the driver can know."""
        trigger = self._machine.last_trigger
        if trigger is Trigger.LEASE_LOST and self._keeper is not None and self._keeper.is_handed_over:
            return _HANDED_OVER
        if trigger is Trigger.CUT_OFF and self._turn_ms > self._parts.config.lease.duration_ms:
            return _STOOD_STILL
        if trigger is Trigger.SHUT_DOWN and not stop.is_set():
            return _FAILED
        return trigger.value

    def _stay_away(self, absence: Absence) -> None:
        """Who does not hold the lease has nothing to leave to others; only who is cut off must not even ask for it."""
        if self._keeper is None or (self._keeper.term is None and absence is not Absence.CUT_OFF):
            return
        if absence is Absence.FAILED:
            self._machine.fail(self._parts.clock.monotonic_ms())
        lease_ms, failures = self._parts.config.lease.duration_ms, self._machine.failures.in_a_row
        wait_ms = absence_ms(absence, lease_ms, failures, self._random.random())
        if absence is Absence.FAILED:
            _log.warning("no take-over, letting others try", failures=failures, wait_ms=wait_ms)
        self._keeper.give_back(wait_ms)

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

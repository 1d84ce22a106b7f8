"""Drives the controller's state machine: performs its actions, and returns their results to it as events.

The machine is :mod:`controlplane.core.election.leading`; its transition table is
:mod:`controlplane.core.election.steps`.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeAlias

import structlog

from controlplane.config import HEARTBEATS
from controlplane.core.election.backoff import PAUSE_MS, BackOff, BackoffReason
from controlplane.core.election.leading import (
    NOT_HELD,
    ControllerMachine,
    HeldLease,
    LeadingEvent,
    LeaseChecked,
    LogRead,
    RoundObserved,
)
from controlplane.core.election.steps import REQUESTED, ControllerAction, ControllerPhase, ControllerTrigger
from controlplane.core.log.log_mark import LogMark
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeStatus
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import FencedError, InvariantViolationError, RetryableError
from controlplane.ports import CommitOutcome, Signal
from controlplane.service.components import ControllerComponents
from controlplane.service.deafness import DeafnessWatch
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.promise_watch import PromiseWatch
from controlplane.service.takeover import TakeOver, read_log, require_slot_policy
from controlplane.service.tick_watch import TickWatch
from controlplane.service.ticker import Ticker
from controlplane.service.topic_ends import TopicEnds, longest_unanswered_ms
from controlplane.service.warm_up import WarmUp

_POLL_MS: Final = 50
_HEARD_WITHIN_MS: Final = 1_000
"""Time without an acknowledged tick after which a leader no longer expects to read its own decisions back, or the
ticks of a partition without one."""
_ANSWERS: Final = {
    CommitOutcome.COMMITTED: ControllerTrigger.COMMITTED,
    CommitOutcome.ABORTED: ControllerTrigger.ABORTED,
    CommitOutcome.FENCED: ControllerTrigger.FENCED,
    CommitOutcome.UNKNOWN: ControllerTrigger.UNANSWERED,
}

_Performers: TypeAlias = Mapping[ControllerAction, Callable[[], LeadingEvent | None]]

_log = structlog.get_logger(__name__)


class Controller:
    """The main loop of one controller process; :meth:`run` is its main thread."""

    def __init__(
        self,
        components: ControllerComponents,
        machine: ControllerMachine,
        keeper: LeaseKeeper | None,
        ticker: Ticker,
        topic_ends: TopicEnds,
        *,
        promise_watch: PromiseWatch,
        random_source: random.Random,
    ) -> None:
        """Compose the loop; ``keeper`` is None for an observer, which follows and never stands for election."""
        self._components = components
        self._keeper = keeper
        self._ticker = ticker
        self._random = random_source
        self._topic_ends = topic_ends
        self._promise_watch = promise_watch
        self._deafness = DeafnessWatch(components.clock)
        self._tick_watch = TickWatch(components.clock, components.metrics)
        self._machine = machine
        self._attempt: TakeOver | None = None
        self._began_at_ms = 0
        self._shown: State | None = None
        self._marked: State | None = None

    @property
    def phase(self) -> ControllerPhase:
        """The current phase of this controller."""
        return self._machine.state.phase

    def run(self, stop: Signal) -> None:
        """Run until ``stop`` is set. A leader gives its lease back at the end, so that another can take over at once.

        Raises:
            StopError: continuing would do harm; the message says what to check.
            ConfigurationError: the slot policy refuses the options that the log gives it, Kafka refuses this client's
                login or a request, settings of topics were changed so that they break a promise, or Redis refuses the
                first request.
        """
        performers = self._performers(stop)
        components = self._components
        # Each is ended whatever the others do, in the reverse of this order.
        with ExitStack() as parts:
            parts.callback(components.follower.close)
            parts.callback(components.input_reader.close)
            parts.callback(components.snapshots.stop)
            parts.callback(self._promise_watch.stop)
            parts.callback(self._topic_ends.stop)
            parts.callback(self._ticker.stop)
            if self._keeper is not None:
                parts.callback(self._keeper.stop)
            parts.callback(self._end, stop, performers)
            components.snapshots.start()
            WarmUp(components, self._ticker).run(stop)
            self._topic_ends.start()
            self._promise_watch.start()
            if self._keeper is not None:
                self._keeper.start()
            event: LeadingEvent = ControllerTrigger.DONE
            while not stop.is_set():
                event = self._react(event, self._hold(), performers)

    def _end(self, stop: Signal, performers: _Performers) -> None:
        """Step down. The keeper is not asked for its hold: it may be what failed. Stopping it releases the lease."""
        self._react(ControllerTrigger.SHUT_DOWN if stop.is_set() else ControllerTrigger.FAILED, NOT_HELD, performers)

    def _react(self, event: LeadingEvent, hold: HeldLease, performers: _Performers) -> LeadingEvent:
        """Perform the machine's actions for an event; return the result of the last action as the next event."""
        now_ms, draw = self._components.clock.monotonic_ms(), self._random.random()
        answer: LeadingEvent | None = None
        try:
            for action in self._machine.on_event(now_ms, event, hold, draw).actions:
                if isinstance(action, BackOff):
                    self._back_off(action)
                else:
                    answer = performers[action]()
        except FencedError as error:
            _log.warning("fenced", error=str(error))
            return ControllerTrigger.FENCED
        except RetryableError as error:
            _log.warning("retrying", error=str(error))
            return ControllerTrigger.UNREACHABLE
        return ControllerTrigger.DONE if answer is None else answer

    def _performers(self, stop: Signal) -> _Performers:
        return {
            ControllerAction.FOLLOW: self._follow,
            ControllerAction.CONFIRM_LEASE: self._confirm_lease,
            ControllerAction.READ_AHEAD: self._read_ahead,
            ControllerAction.OPEN_WRITER: self._open_writer,
            ControllerAction.READ_LOG: self._read_past_barrier,
            ControllerAction.RAISE_FLOOR: self._raise_floor,
            ControllerAction.CATCH_UP: self._catch_up,
            ControllerAction.OPEN_TERM: self._open_term,
            ControllerAction.ANNOUNCE: self._announce,
            ControllerAction.OBSERVE: self._observe,
            ControllerAction.DECIDE: self._decide,
            ControllerAction.ASK_FOR_OUTCOME: self._ask_for_outcome,
            ControllerAction.READ_BACK: self._read_back,
            ControllerAction.DISCARD: self._discard,
            ControllerAction.PAUSE: partial(_pause, stop),
        }

    def _hold(self) -> HeldLease:
        """The keeper's knowledge of the lease; raises the exception that ended the keeper's thread, if any."""
        return NOT_HELD if self._keeper is None else self._keeper.hold

    @property
    def _take_over(self) -> TakeOver:
        if self._attempt is None:
            raise InvariantViolationError(f"a controller that is {self.phase.value} has opened no writer")
        return self._attempt

    def _follow(self) -> LeadingEvent:
        components = self._components
        components.dead_letters.listen()
        try:
            components.follower.poll(0)
        finally:
            # Also while the log cannot be read: a client that is not polled queues its broker's reports in memory.
            components.input_reader.poll(_POLL_MS)
        components.input_reader.follow_partitions(components.follower.state)
        components.input_reader.catch_up_with(components.follower.state)
        components.input_reader.refusals.drop_oldest()
        self._show(components.follower.state, leading=False)
        if self._keeper is not None:
            # Checked before this controller can fence a leader: one that cannot decide must end instead of standing by.
            require_slot_policy(components, components.follower.state)
        return self._round_observed()

    def _round_observed(self) -> RoundObserved:
        """What was observed of Kafka in this round; raises the exception that ended a thread of this controller."""
        self._promise_watch.require_kept()
        now_ms = self._components.clock.monotonic_ms()
        self._ticker.cover(self._components.input_reader.known_partitions)
        input_reader = self._components.input_reader
        deaf = self._deafness.look(input_reader.offsets_read(), self._answered_ends())
        if self._keeper is not None:
            self._keeper.notes.ask_for_contenders(needed=bool(deaf))
        since_acknowledged_ms = self._ticker.since_acknowledged_ms()
        return RoundObserved(
            since_acknowledged_ms,
            input_reader.since_last_read_ms(),
            self._ticker.stood_still_ms(),
            is_deaf=bool(deaf),
            contender_ahead_ms=self._contender_ahead_ms(now_ms - since_acknowledged_ms),
            longest_unanswered_ms=longest_unanswered_ms(self._ticker, self._topic_ends),
            has_answers=self._topic_ends.has_answers,
            contender_unanswered_ms=None if self._keeper is None else self._keeper.notes.contender_unanswered_ms(),
        )

    def _answered_ends(self) -> dict[TopicPartition, int]:
        """Where the inputs end of which Kafka answers now: also with acknowledgements, where this controller ticks."""
        acknowledged = self._ticker.acknowledged_within(_HEARD_WITHIN_MS)
        ends = self._topic_ends.last().items()
        return {place: end for place, end in ends if place.topic != HEARTBEATS or place in acknowledged}

    def _contender_ahead_ms(self, acknowledged_at_ms: int) -> int | None:
        """By how much Kafka's last acknowledgement of a contender's tick is later than that of this controller."""
        contender_at_ms = None if self._keeper is None else self._keeper.notes.contender_acknowledged_at_ms()
        return None if contender_at_ms is None else contender_at_ms - acknowledged_at_ms

    def _confirm_lease(self) -> LeadingEvent:
        keeper, term = self._keeper, self._machine.state.term
        if keeper is None or term is None:
            raise InvariantViolationError("an observer has no lease to confirm")
        return LeaseChecked(keeper.confirm(term))

    def _read_ahead(self) -> LeadingEvent:
        self._began_at_ms = self._components.clock.monotonic_ms()
        _log.info("taking over", term=self._machine.state.term)
        return LogRead(read_log(self._components))

    def _open_writer(self) -> None:
        term = self._machine.state.term
        if term is None:
            raise InvariantViolationError("a controller without a term must not open a writer, which fences others")
        self._attempt = TakeOver(self._components, term)
        self._attempt.open_writer()

    def _read_past_barrier(self) -> LeadingEvent:
        return LogRead(self._take_over.read_log())

    def _raise_floor(self) -> None:
        log_term = self._components.follower.state.term
        _log.warning("the log already contains this term or a higher one", log_term=log_term)
        if self._keeper is not None:
            self._keeper.raise_floor(log_term)

    def _catch_up(self) -> None:
        self._take_over.catch_up()

    def _open_term(self) -> LeadingEvent:
        return _ANSWERS[self._take_over.open_term()]

    def _announce(self) -> None:
        leadership = self._take_over.leadership
        elapsed_ms = self._components.clock.monotonic_ms() - self._began_at_ms
        _log.info("leading", term=leadership.term, seq=leadership.state.seq, elapsed_ms=elapsed_ms)
        structlog.contextvars.bind_contextvars(term=leadership.term)
        self._deafness.begin_again()
        self._take_over.remember_log_id()
        self._show(leadership.state, leading=True)

    def _observe(self) -> LeadingEvent:
        self._components.input_reader.poll(_POLL_MS)
        return self._round_observed()

    def _decide(self) -> LeadingEvent:
        leadership = self._take_over.leadership
        outcome = leadership.decide()
        self._show(leadership.state, leading=True)
        return ControllerTrigger.NOTHING_TO_COMMIT if outcome is None else self._answer(outcome)

    def _ask_for_outcome(self) -> LeadingEvent:
        return self._answer(self._take_over.leadership.resolve())

    def _answer(self, outcome: CommitOutcome) -> ControllerTrigger:
        resigned = outcome is CommitOutcome.COMMITTED and self._take_over.leadership.has_resigned
        return ControllerTrigger.RESIGNED if resigned else _ANSWERS[outcome]

    def _read_back(self) -> None:
        """Read the leader's own decisions back, and offer the point reached to the snapshot keeper."""
        self._take_over.watch_table()
        led = self._take_over.leadership.state
        if self._keeper is not None and led is not self._marked:
            # Every decision of this state is known to be committed.
            self._marked = led
            self._keeper.notes.mark(LogMark(led.log_id, led.term, led.seq))
        if self._take_over.read_back(self._is_acknowledged):
            self._components.snapshots.look(self._components.follower.point)

    def _is_acknowledged(self) -> bool:
        return self._ticker.since_acknowledged_ms() < _HEARD_WITHIN_MS

    def _discard(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        if attempt.leads:
            reason = self._machine.last_trigger
            tell = _log.info if reason in REQUESTED else _log.warning
            tell("stepping down", reason=reason.value, term=attempt.leadership.term)
            structlog.contextvars.unbind_contextvars("term")
            self._components.metrics.steps_down.labels(reason.value).inc()
            self._components.metrics.leading.set(0)
        attempt.close()

    def _back_off(self, back_off: BackOff) -> None:
        if self._keeper is None:
            return
        if back_off.reason is BackoffReason.FAILED:
            failures, wait_ms = back_off.failures_in_a_row, back_off.wait_ms
            _log.warning("take-over failed, backing off so that others can try", failures=failures, wait_ms=wait_ms)
        self._keeper.give_back(back_off.wait_ms)

    def _show(self, state: State, *, leading: bool) -> None:
        metrics = self._components.metrics
        metrics.leading.set(1 if leading else 0)
        self._tick_watch.look(self._components.input_reader.observations)
        now_ms = self._components.input_reader.observations.now_ms
        if now_ms is not None:
            metrics.lag_ms.set(self._components.clock.wall_ms() - now_ms)
        if state is self._shown:
            return
        self._shown = state
        if state.cluster.has_several_brokers_rules:
            self._ticker.name(state.seq, state.epoch)
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
